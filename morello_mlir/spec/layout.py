"""Layouts: the physical order of a tensor's dimensions, slowest to fastest, with packed inner parts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ..errors import SpecError, excerpt

#: A number in the text forms: no more digits than fit an i64.
NUMBER = r"[0-9]{1,18}"
_PART = re.compile(rf"([A-Za-z_]\w*|{NUMBER})(?:([/%])({NUMBER}))?$")


@dataclass(frozen=True, slots=True)
class Layout:
    """A physical dimension order, slowest to fastest.

    Each part is `(dim, width)`: `width` is None for a whole dim; a packed dim occurs twice, first as `(d, p)` not
    last (the panel number, `d/p` in text), then as `(d, p)` again (the place in the panel, `d%p`). The last panel is
    padded to `p`.

    Raises SpecError where the parts are not a permutation of the dims with matching packed pairs.
    """

    parts: tuple[tuple[int, int | None], ...]

    def __post_init__(self) -> None:
        seen: dict[int, list[int | None]] = {}
        for dim, width in self.parts:
            seen.setdefault(dim, []).append(width)
        if sorted(seen) != list(range(len(seen))):
            raise SpecError(f"layout {self.parts}: dimensions must be 0..{len(seen) - 1}, each at least once")
        for dim, widths in seen.items():
            packed = len(widths) == 2 and widths[0] is not None and widths[0] == widths[1]
            if widths != [None] and not packed:
                raise SpecError(f"layout {self.parts}: dimension {dim} must occur once, or twice with one pack width")
            if packed and widths[0] is not None and widths[0] < 1:
                raise SpecError(f"layout {self.parts}: pack width {widths[0]} of dimension {dim} is not positive")

    @staticmethod
    def permutation(order: Sequence[int]) -> Layout:
        """The layout without packing whose dims go `order`, slowest to fastest."""
        return Layout(tuple((d, None) for d in order))

    @staticmethod
    def row_major(rank: int) -> Layout:
        return Layout.permutation(range(rank))

    @staticmethod
    def col_major(rank: int) -> Layout:
        """The last two dims swapped; leading (batch) dims stay slowest."""
        if rank < 2:
            raise SpecError(f"col_major needs at least two dimensions, not {rank}")
        return Layout.permutation([*range(rank - 2), rank - 1, rank - 2])

    @staticmethod
    @lru_cache(maxsize=1024)
    def packed(rank: int, dim: int, width: int, group: int = 1) -> Layout:
        """Panels of `width` along `dim`, for matrices in the last two dims: `[.., dim/width, other, dim%width]`.

        group: so many neighbours along the other dim lie next to each other: `[.., dim/width, other/group, dim%width,
        other%group]`, padded with zeros to whole groups. Kernels multiply and add them in one instruction.
        """
        other = {rank - 2: rank - 1, rank - 1: rank - 2}.get(dim)
        if other is None:
            raise SpecError(f"only one of the last two dimensions can be packed, not dimension {dim} of {rank}")
        lead = tuple((d, None) for d in range(rank - 2))
        if group == 1:
            return Layout((*lead, (dim, width), (other, None), (dim, width)))
        return Layout((*lead, (dim, width), (other, group), (dim, width), (other, group)))

    def exchanged(self) -> Layout:
        """The same places with the last two dims in each other's role."""
        rank = self.rank
        other = {rank - 2: rank - 1, rank - 1: rank - 2}
        return Layout(tuple((other.get(d, d), width) for d, width in self.parts))

    @property
    def rank(self) -> int:
        return len({d for d, _ in self.parts})

    @property
    def is_packed(self) -> bool:
        return any(w is not None for _, w in self.parts)

    @property
    def panels(self) -> tuple[int, int, int] | None:
        """(dim, width, group) where this is what `packed` makes of these, else None."""
        return _panels(self)

    @property
    def group(self) -> int:
        """How many neighbours along the other dim lie together in a panel (see `packed`); 1 elsewhere."""
        panels = self.panels
        return panels[2] if panels else 1

    @property
    def innermost(self) -> int:
        """The logical dim that has unit stride."""
        return self.parts[-1][0] if self.parts else -1

    def pack_width(self, dim: int) -> int | None:
        """The panel width along `dim`, or None where it is not packed."""
        for d, width in self.parts:
            if d == dim and width is not None:
                return width
        return None

    def physical_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Sizes of the parts, slowest to fastest, for a tensor of logical `shape` (the last panel is padded)."""
        if len(shape) != self.rank:
            raise SpecError(f"a layout of rank {self.rank} cannot hold shape {list(shape)}")
        inner: set[int] = set()
        out = []
        for dim, width in self.parts:
            if width is None:
                out.append(shape[dim])
            elif dim in inner:
                out.append(width)
            else:
                inner.add(dim)
                out.append(-(-shape[dim] // width))
        return tuple(out)

    def volume(self, shape: Sequence[int]) -> int:
        """Elements taken by a tensor of logical `shape`, padding included."""
        return math.prod(self.physical_shape(shape))

    def offset(self, index: Sequence[int], shape: Sequence[int]) -> int:
        """The element offset of logical `index` in a dense tensor of logical `shape`."""
        sizes = self.physical_shape(shape)
        inner: set[int] = set()
        at = 0
        for (dim, width), size in zip(self.parts, sizes, strict=True):
            if width is None:
                part = index[dim]
            elif dim in inner:
                part = index[dim] % width
            else:
                inner.add(dim)
                part = index[dim] // width
            at = at * size + part
        return at

    def text(self, names: Sequence[str] | None = None) -> str:
        """`row_major`, `col_major`, or the parts in brackets: `[b, n/16, k, n%16]`."""
        rank = self.rank
        if self == Layout.row_major(rank):
            return "row_major"
        if rank >= 2 and self == Layout.col_major(rank):
            return "col_major"
        names = names or [str(d) for d in range(rank)]
        seen: set[int] = set()
        out = []
        for dim, width in self.parts:
            if width is None:
                out.append(names[dim])
            else:
                out.append(f"{names[dim]}{'%' if dim in seen else '/'}{width}")
                seen.add(dim)
        return f"[{', '.join(out)}]"

    def __str__(self) -> str:
        return self.text()

    @staticmethod
    def parse(text: str, names: Sequence[str]) -> Layout:
        """Reads what `text` printed, for a tensor whose dims are called `names` (numbers serve too).

        Raises SpecError.
        """
        text = text.strip()
        if text == "row_major":
            return Layout.row_major(len(names))
        if text == "col_major":
            return Layout.col_major(len(names))
        if not (text.startswith("[") and text.endswith("]")):
            raise SpecError(f"layout '{excerpt(text)}': expected row_major, col_major or [dims, slowest to fastest]")
        parts: list[tuple[int, int | None]] = []
        order: list[tuple[int, str]] = []
        body = text[1:-1].strip()
        for piece in body.split(",") if body else []:
            m = _PART.match(piece.strip())
            if not m:
                raise SpecError(f"layout '{excerpt(text)}': cannot read '{excerpt(piece.strip())}'")
            name, mark, width = m.groups()
            if name in names:
                dim = names.index(name)
            elif name.isdigit() and int(name) < len(names):
                dim = int(name)
            else:
                raise SpecError(
                    f"layout '{excerpt(text)}': unknown dimension '{excerpt(name)}' (have {', '.join(names)})"
                )
            parts.append((dim, int(width) if width else None))
            if mark:
                order.append((dim, mark))
        for dim in {d for d, _ in order}:
            if [m for d, m in order if d == dim] != ["/", "%"]:
                raise SpecError(
                    f"layout '{excerpt(text)}': '{names[dim]}' must occur as {names[dim]}/p, then {names[dim]}%p"
                )
        layout = Layout(tuple(parts))
        if layout.rank != len(names):
            raise SpecError(f"layout '{excerpt(text)}' has {layout.rank} dimensions, expected {len(names)}")
        return layout


@lru_cache(maxsize=1024)
def _panels(layout: Layout) -> tuple[int, int, int] | None:
    rank = layout.rank
    first, last = layout.parts[rank - 2 : rank], layout.parts[-1]
    dim, width = first[0] if rank > 1 else (0, None)
    if width is None:
        return None
    group = last[1] if last[0] != dim and last[1] else 1
    return (dim, width, group) if dim >= rank - 2 and layout == Layout.packed(rank, dim, width, group) else None


def row_stride(layout: Layout, strides: Sequence[int]) -> int:
    """Distance in elements between neighbours along the second-fastest dim (unpacked layouts)."""
    order = [d for d, _ in layout.parts]
    inner = order[-1]
    return strides[next(d for d in reversed(order) if d != inner)] if len(order) > 1 else strides[inner]


def dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of `sizes`, in elements."""
    out = [1]
    for s in reversed(sizes[1:]):
        out.append(out[-1] * s)
    return tuple(reversed(out)) if sizes else ()


def is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """True where `strides` leave no gaps and no overlaps in the order of falling strides."""
    live = sorted(((st, sz) for sz, st in zip(sizes, strides, strict=True) if sz != 1), reverse=True)
    if not live:
        return True
    return live[-1][0] == 1 and all(a[0] == b[0] * b[1] for a, b in pairwise(live))
