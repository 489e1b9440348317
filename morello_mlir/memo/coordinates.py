"""Coordinates: every Spec that a table answers is a table key and an integer point, and back.

A point is `(m, k, n, limit)`: sizes as coordinates of the scale (`size_coordinate`), and the whole steps left of the
one cache whose limit can still matter. What cannot matter is not part of it: other limits, row strides that no cost
tells apart, and whether GL is DRAM once no operand is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..actions import OperandState, TableKey, canonical_stride, key_of, limits_of, matters, spec_of
from ..errors import SpecError
from ..search.tables import AXES
from ..spec import DTYPE_BYTES, FUNCTIONS, Layout, Spec, dtype_bytes
from ..spec.spec import MAX_STRIDE_CLASS
from ..targets import Target

Point = tuple[int, int, int, int]


# ---------------------------------------------------------------- sizes


def size_coordinate(size: int) -> int:
    """The place of `size` on the scale 1, 2, 3, 4, 6, 8, 12, ...; sizes off the scale keep to themselves, below 0.

    A bijection from the positive integers; the inverse is `size_at`.
    """
    if size < 1:
        raise ValueError(f"size {size} is not positive")
    odd = size // (size & -size)
    power = (size & -size).bit_length() - 1
    if odd == 1:
        return max(0, 2 * power - 1)
    return 2 * power + 2 if odd == 3 else -size


def size_at(coordinate: int) -> int:
    """The size at `coordinate`."""
    if coordinate < 0:
        return -coordinate
    if coordinate % 2 or not coordinate:
        return 1 << (coordinate + 1) // 2
    return 3 << (coordinate // 2 - 1)


def on_scale(size: int) -> bool:
    """Whether a size is on the scale: 2^x or 3 * 2^x."""
    return size_coordinate(size) >= 0


# ---------------------------------------------------------------- table keys


def memo_key(key: TableKey, target: Target) -> TableKey:
    """The key whose table holds the same numbers as that of `key`, as the search merges them."""
    return key.canonical(target)


def key_text(key: TableKey) -> str:
    """`key` as text: the function, operands as (memory, layout, stride class), and flags."""
    parts = [key.function, key.dtype]
    for i, o in enumerate(key.operands):
        fields = [o.memory, o.layout.text(key.names(i))]
        fields += [f"s{o.stride}"] if o.stride is not None else []
        fields += [] if o.unit else ["gapped"]
        fields += [o.dtype] if o.dtype else []
        # No memo has keys with windows: what is there never reads as one.
        fields += o.window.text(key.names(i)) if o.window else []
        parts.append(" ".join(fields))
    threading = "serial" if key.is_serial else f"parallel {key.threads}" + " forked" * key.forked
    parts += [threading] + (["far"] if key.far else [])
    parts += [f"kernels {key.kernels}"] if key.kernels else []
    return "; ".join(parts)


def parse_key(text: str) -> TableKey:
    """Reads what `key_text` wrote. Raises SpecError."""
    parts = text.split("; ")
    if len(parts) < 2 or parts[0] not in FUNCTIONS:
        raise SpecError(f"not a table key: '{text}'")
    names = [dims for _, dims in FUNCTIONS[parts[0]].operands]
    kernels = kernels_of(parts.pop()) if kernels_of(parts[-1]) else ""
    if len(parts) not in (len(names) + 3, len(names) + 4):
        raise SpecError(f"not a table key: '{text}'")
    operands = tuple(_parse_state(p, n) for p, n in zip(parts[2:], names, strict=False))
    flags = parts[2 + len(names) :]
    threads, forked = _parse_threading(flags[0])
    return TableKey(parts[0], parts[1], operands, threads, flags[1:] == ["far"], forked, kernels)


def kernels_of(text: str) -> str:
    """Of the text of a key: which kernels for narrow element types it is about, or nothing."""
    return text.rpartition("; ")[2].partition("kernels ")[2]


def _parse_threading(text: str) -> tuple[int, bool]:
    if text == "serial":
        return 1, False
    word, _, count = text.removesuffix(" forked").partition(" ")
    if word != "parallel" or not count.isdigit():
        raise SpecError(f"not a table key: '{text}'")
    return int(count), text.endswith(" forked")


def _parse_state(text: str, names: tuple[str, ...]) -> OperandState:
    memory, _, rest = text.partition(" ")
    before, _, last = rest.rpartition(" ")
    dtype = last if last in DTYPE_BYTES else None
    rest = before if dtype else rest
    unit = not rest.endswith(" gapped")
    rest = rest.removesuffix(" gapped")
    layout, _, stride = rest.rpartition(" s")
    if layout and stride.isdigit():
        return OperandState(memory, Layout.parse(layout, names), int(stride), unit, dtype=dtype)
    return OperandState(memory, Layout.parse(rest, names), None, unit, dtype=dtype)


# ---------------------------------------------------------------- points


def is_answered(key: TableKey, left: Mapping[str, int], target: Target) -> bool:
    """True where the tables of a goal without limits answer `key` with `left` of each memory: what can still matter,
    besides the limit axis, is whole."""
    axis = key.limit_axis()
    whole = target.limits
    return all(left[m] == whole[m] or m == axis or not matters(key, m) for m in whole) and "VRF" not in key.memories


def limit_index(key: TableKey, left: Mapping[str, int], target: Target) -> int:
    """The place on the limit axis of the table of `key`."""
    axis = key.limit_axis()
    return left[axis] // target.cache(axis).step if axis else 0


def coordinate(spec: Spec, target: Target) -> tuple[TableKey, Point] | None:
    """The table key and point of `spec`; None where no table answers it (before to_accum, batches, constant operands,
    outputs in registers, limits that a whole goal cannot lead to)."""
    key, left = memo_key(key_of(spec, target), target), limits_of(spec, target)
    dims = dict(zip(spec.info.dims, spec.dims, strict=True))
    if (
        not (spec.info.accumulates or key.streams)
        or dims["b"] != 1
        or key.has_const
        or not is_answered(key, left, target)
    ):
        return None
    m, k, n = (size_coordinate(dims[d]) for d in AXES)
    return key, (m, k, n, limit_index(key, left, target))


def spec_at(key: TableKey, point: Point, target: Target) -> Spec:
    """The Spec at `point` of the table of `key`: of those that share the coordinate, the canonical one."""
    dims = {"b": 1, **{d: size_at(c) for d, c in zip(AXES, point[:3], strict=True)}}
    axis = key.limit_axis()
    left = {axis: point[3] * target.cache(axis).step} if axis else {}
    limits = {m: v for m, v in left.items() if v != target.limits[m]}
    return spec_of(key, dims, limits)


def specs_at_a_point(key: TableKey, target: Target, largest_class: int = MAX_STRIDE_CLASS) -> int:
    """How many canonical Specs (limits in whole steps) one point of the table of `key` answers: every limit vector that
    leads there, the row stride classes that no cost tells apart, GL as DRAM or not where no operand is there, and the
    function with and without accumulation (to_accum is free and the only first step). largest_class: of row strides."""
    functions, depths = 1 if key.streams else 2, 1 if "GL" in key.memories else 2
    count = functions * depths * free_limits(key, target)
    for i, state in enumerate(key.operands):
        if not state.layout.is_packed:
            classes = (1 << x for x in range(largest_class.bit_length()))
            wide = [c for c in classes if c >= dtype_bytes(key.dtype_of(i))]
            count *= sum(canonical_stride(i, state.memory, c, target) == state.stride for c in wide)
    return count


def free_limits(key: TableKey, target: Target) -> int:
    """How many limit vectors (caches in whole steps) share one point: any amount of what cannot matter any more."""
    axis = key.limit_axis()
    free = [m for m in ("L1", "L2") if m != axis and not matters(key, m)]
    count = 1
    for memory in free:
        count *= target.limits[memory] // target.cache(memory).step + 1
    return count
