"""Families of goals: which Specs `morello precompute` answers, grouped so that goals share their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..actions import MoveAction, TableKey, key_of, scale
from ..actions.space import panels, past_caches
from ..errors import InputError
from ..search.tables import AXES
from ..spec import accumulator, matmul_spec
from ..targets import Target
from .coordinates import memo_key

LAYOUTS = ("row_major", "col_major")
#: Element types of lhs, rhs and output, by name. Others are written out, as `f32:bf16:f32`.
DTYPES = {
    "f32": ("f32", "f32", "f32"),
    "f64": ("f64", "f64", "f64"),
    "bf16": ("bf16", "bf16", "f32"),
    "f16": ("f16", "f16", "f32"),
    "i8": ("i8", "i8", "i32"),
    "u8i8": ("u8", "i8", "i32"),
}


def element_types(name: str) -> tuple[str, ...]:
    """Of lhs, rhs and output: of a name in DTYPES, or written out. Raises InputError."""
    types = DTYPES.get(name) or tuple(name.split(":"))
    if len(types) != 3 or accumulator(types[:2], types[2]) is None:
        raise InputError(f"there are no kernels for {name} (have {', '.join(DTYPES)}, and others as LHS:RHS:OUT)")
    return types


#: In place of a layout: a constant operand, packed ahead in each of the layouts that the search tries.
CONST = "const"


@dataclass(frozen=True)
class Root:
    """A table key with goals, and their sizes (m, k, n)."""

    key: TableKey
    sizes: tuple[tuple[int, int, int], ...]

    @property
    def largest(self) -> dict[str, int]:
        """The largest size of each dim."""
        return {d: max(s[i] for s in self.sizes) for i, d in enumerate(AXES)}


@dataclass(frozen=True)
class Family:
    """Contiguous matmuls with sizes on the scale up to `max_size`, for `threads` threads each.

    dtype: a name that `element_types` knows. layouts: of lhs and rhs, LAYOUTS or CONST.
    """

    dtype: str = "f32"
    max_size: int = 4096
    layouts: tuple[tuple[str, str], ...] = tuple((lhs, rhs) for lhs in LAYOUTS for rhs in LAYOUTS)
    threads: tuple[int, ...] = (1,)

    def sizes(self) -> list[int]:
        return [s for s in scale(self.max_size + 1) if s <= self.max_size]

    def goals(self) -> Iterator[tuple[str, str, int, int, int]]:
        """lhs layout, rhs layout, m, k, n of every goal."""
        sizes = self.sizes()
        for lhs, rhs in self.layouts:
            for m in sizes:
                for k in sizes:
                    for n in sizes:
                        yield lhs, rhs, m, k, n

    def tasks(self, target: Target) -> list[list[Root]]:
        """The roots, in lists whose tables overlap: those of one output and one layout of lhs, for any threads. In
        each, the order is such that what was solved for one root serves the next, which is not larger."""
        found: dict[TableKey, list[tuple[int, int, int]]] = {}
        for lhs, rhs, m, k, n in self.goals():
            for key in self._keys(lhs, rhs, (m, k, n), target):
                for threads in self.threads:
                    found.setdefault(replace(memo_key(key, target), threads=threads), []).append((m, k, n))
        groups: dict[object, list[Root]] = {}
        for key, sizes in found.items():
            lhs_state, _, out = key.operands
            groups.setdefault((out, lhs_state.layout), []).append(Root(key, tuple(sizes)))
        for roots in groups.values():
            roots.sort(key=_order)
        return sorted(groups.values(), key=lambda g: -sum(len(r.sizes) for r in g))

    def _keys(self, lhs: str, rhs: str, sizes: tuple[int, int, int], target: Target) -> list[TableKey]:
        """The table keys of a goal: several where an operand may be packed ahead."""
        names = [LAYOUTS[0] if layout == CONST else layout for layout in (lhs, rhs)]
        spec = matmul_spec(*sizes, lhs=names[0], rhs=names[1], accumulate=True)
        operands = (replace(o, dtype=d) for o, d in zip(spec.operands, element_types(self.dtype), strict=True))
        spec = replace(spec, operands=tuple(operands))
        keys = [key_of(spec, target)]
        for i, layout in enumerate((lhs, rhs)):
            if layout == CONST:
                keys = [
                    k.with_operand(i, MoveAction(i, "GL", *form).moved(k))
                    for k in keys
                    for form in panels(k, i, target)
                ]
        dims = dict(zip(("b", *AXES), (1, *sizes), strict=True))
        overwriting = [replace(k, function=k.function.removesuffix("Accum")) for k in keys]
        past = [(a, k) for k in overwriting for a in past_caches(k, dims, target)]
        return keys + [child.key for action, k in past for child in action.children(k, dims)]


def _order(root: Root) -> tuple[object, ...]:
    """Loops over lhs outside and rhs inside, each from large to small."""
    key, largest = root.key, root.largest

    def place(i: int) -> tuple[object, ...]:
        layout = key.operands[i].layout
        return -largest[key.names(i)[layout.innermost]], layout.text()

    return *place(0), *place(1), *(-largest[d] for d in AXES), key.far, key.threads
