"""Specs: a function over tensor specs, plus memory limits. What is to be computed, never how (DESIGN, vocabulary).

Text form, read and printed by `Spec.parse` and `str`:

    Matmul([1, 512, 512, 512], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import SpecError, excerpt
from .dtype import accumulator, dtype_bytes
from .layout import NUMBER, Layout
from .then import Then
from .window import Window, is_part, parse_window

#: Memories, outermost first. WC: an output that is written once, past the caches, by way of the buffers in which stores
#: to a line are combined. Limits are in cache lines for caches and in registers for VRF.
MEMORIES = ("GL", "WC", "L2", "L1", "VRF")
LIMITED = ("VRF", "L1", "L2")

#: Row strides are told apart by the largest power of two that divides them, up to this many bytes (beyond the span of
#: any L2's sets it makes no difference to which sets the rows fall into).
MAX_STRIDE_CLASS = 1 << 17
#: Steps (the product of the sizes) of the largest Specs: hours of work for a core. Costs of much larger ones overflow.
MAX_STEPS = 1 << 46
#: Threads of the most parallel Specs: what the pool serves.
MAX_THREADS = 253


@dataclass(frozen=True, slots=True)
class Function:
    """What a Spec can compute: its dims, and which dims each operand has, in logical order. The output is last."""

    name: str
    dims: tuple[str, ...]
    operands: tuple[tuple[str, tuple[str, ...]], ...]
    reduction: tuple[str, ...]
    accumulates: bool

    def operand_index(self, name: str) -> int:
        for i, (n, _) in enumerate(self.operands):
            if n == name:
                return i
        raise SpecError(f"{self.name} has no operand '{name}' (have {', '.join(n for n, _ in self.operands)})")


def _matmul(name: str, accumulates: bool) -> Function:
    operands = (("lhs", ("b", "m", "k")), ("rhs", ("b", "k", "n")), ("out", ("b", "m", "n")))
    return Function(name, ("b", "m", "k", "n"), operands, ("k",), accumulates)


#: `Matmul`: out = lhs @ rhs per batch; `MatmulAccum`: out += lhs @ rhs.
FUNCTIONS = {f.name: f for f in (_matmul("Matmul", False), _matmul("MatmulAccum", True))}


def stride_class(stride_bytes: int) -> int:
    """The largest power of two that divides `stride_bytes`, at most MAX_STRIDE_CLASS (which 0 maps to as well)."""
    return min(stride_bytes & -stride_bytes, MAX_STRIDE_CLASS) if stride_bytes else MAX_STRIDE_CLASS


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One operand: dtype, memory, layout and contiguity class.

    row_stride: the class (see `stride_class`) of the distance in bytes between rows; None where rows follow one another
    (the class is then that of the row length) and in packed layouts. unit: the innermost dim has unit stride.
    const: an input whose contents are the same whenever the Spec runs, as weights are: it can be packed ahead, once.
    window: where places along a dim are not all one stride apart (see `Window`).
    """

    dtype: str
    memory: str
    layout: Layout
    row_stride: int | None = None
    unit: bool = True
    const: bool = False
    window: Window | None = None

    def __post_init__(self) -> None:
        dtype_bytes(self.dtype)
        if self.memory not in MEMORIES:
            raise SpecError(f"unknown memory '{self.memory}' (have {', '.join(MEMORIES)})")
        s = self.row_stride
        if s is not None and (s <= 0 or s & (s - 1) or s > MAX_STRIDE_CLASS):
            raise SpecError(f"row stride class {s} is not a power of two up to {MAX_STRIDE_CLASS}")
        if self.const and self.memory != "GL":
            raise SpecError(f"a constant operand is in GL, not {self.memory}")
        if self.window is not None and (self.layout.is_packed or self.memory == "VRF" or self.layout.rank != 3):
            raise SpecError(f"a tensor with a window has three dims and lies in memory, not packed: {self.layout}")

    def text(self, names: Sequence[str] | None = None) -> str:
        """`(f32, GL, row_major)`, with `s4096` for a row stride class, `gapped` for a non-unit inner stride, `const`,
        and the parts of a window."""
        out = [self.dtype, self.memory, self.layout.text(names)]
        if self.row_stride is not None:
            out.append(f"s{self.row_stride}")
        if not self.unit:
            out.append("gapped")
        if self.const:
            out.append("const")
        if self.window is not None:
            out += self.window.text(names or [str(d) for d in range(self.layout.rank)])
        return f"({', '.join(out)})"

    def __str__(self) -> str:
        return self.text()

    @staticmethod
    def parse(text: str, names: Sequence[str]) -> TensorSpec:
        """Reads what `text` printed. Raises SpecError."""
        t = text.strip()
        if not (t.startswith("(") and t.endswith(")")):
            raise SpecError(f"tensor spec '{t}': expected (dtype, memory, layout)")
        pieces = split_top(t[1:-1])
        if len(pieces) < 3:
            raise SpecError(f"tensor spec '{t}': expected (dtype, memory, layout)")
        stride, unit, const = None, True, False
        window = parse_window(pieces[3:], names)
        for extra in pieces[3:]:
            if extra == "gapped":
                unit = False
            elif extra == "const":
                const = True
            elif re.fullmatch(rf"s{NUMBER}", extra):
                stride = int(extra[1:])
            elif is_part(extra):
                continue
            else:
                raise SpecError(f"tensor spec '{t}': cannot read '{extra}'")
        return TensorSpec(pieces[0], pieces[1], Layout.parse(pieces[2], names), stride, unit, const, window)


def split_top(text: str) -> list[str]:
    """Splits at commas outside brackets. Raises SpecError on unbalanced brackets."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth < 0:
                raise SpecError(f"unbalanced brackets in '{text}'")
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    if depth:
        raise SpecError(f"unbalanced brackets in '{text}'")
    last = text[start:].strip()
    return [*out, last] if last or out else []


@dataclass(frozen=True, slots=True)
class Spec:
    """A goal. dims follow the function's order ([b, m, k, n]); limits are (memory, amount) pairs, or empty for the
    whole machine. far: the goal is part of one whose operands do not fit the last-level cache, so that GL is DRAM.
    serial: one thread works on it; else `threads` do (0: as many as this process may use). forked: these threads are
    under way already, each for its own part: only a parallel loop may follow. then: what becomes of the sums before
    they are written (None: nothing). `canonical` makes equal goals equal objects.

    Raises SpecError for an unknown function, a wrong number of dims or operands, negative sizes or bad limits.
    """

    function: str
    dims: tuple[int, ...]
    operands: tuple[TensorSpec, ...]
    serial: bool = True
    limits: tuple[tuple[str, int], ...] = ()
    far: bool = False
    threads: int = 0
    forked: bool = False
    then: Then | None = None

    def __post_init__(self) -> None:
        f = FUNCTIONS.get(self.function)
        if f is None:
            raise SpecError(f"unknown function '{self.function}' (have {', '.join(FUNCTIONS)})")
        if len(self.dims) != len(f.dims):
            raise SpecError(f"{self.function} has {len(f.dims)} dims [{', '.join(f.dims)}], not {len(self.dims)}")
        if any(d < 0 for d in self.dims):
            raise SpecError(f"{self.function}: negative size in {list(self.dims)}")
        if math.prod(self.dims) > MAX_STEPS:
            raise SpecError(f"{self.function}: {list(self.dims)} is too large: more than {MAX_STEPS:,} steps")
        if len(self.operands) != len(f.operands):
            raise SpecError(f"{self.function} has {len(f.operands)} operands, not {len(self.operands)}")
        for (name, dims), t in zip(f.operands, self.operands, strict=True):
            if t.layout.rank != len(dims):
                raise SpecError(f"{self.function}: the layout of {name} has rank {t.layout.rank}, not {len(dims)}")
            if t.window is not None:
                self._check_window(name, dims, t.window)
        if not 0 <= self.threads <= MAX_THREADS:
            raise SpecError(f"{self.function}: {self.threads} threads are not between 1 and {MAX_THREADS}")
        if self.serial and (self.threads > 1 or self.forked):
            raise SpecError(f"{self.function}: a serial goal has one thread")
        if self.operands[-1].const:
            raise SpecError(f"{self.function}: {f.operands[-1][0]} is written, so that it cannot be constant")
        if len(dict(self.limits)) != len(self.limits):
            raise SpecError(f"{self.function}: two limits of one memory in {list(self.limits)}")
        for memory, amount in self.limits:
            if memory not in LIMITED or amount < 0:
                raise SpecError(f"bad limit {memory}={amount} (limits: {', '.join(LIMITED)}, not negative)")
        if self.then is not None:
            self._check_then(self.then)

    def _check_then(self, then: Then) -> None:
        *inputs, out = self.operands
        if accumulator([t.dtype for t in inputs], then.sums) != then.sums:
            names = " and ".join(dict.fromkeys(t.dtype for t in inputs))
            raise SpecError(f"{self.function}: products of {names} are not added up in {then.sums}")
        if then.dtype != out.dtype:
            raise SpecError(f"{self.function}: the output is {out.dtype}, and then gives {then.dtype}")
        if self.info.accumulates and out.dtype != then.sums:
            raise SpecError(f"{self.function}: an output of {out.dtype} holds no sums of {then.sums} to add to")
        if out.memory == "VRF":
            raise SpecError(f"{self.function}: then is for an output in memory")

    def _check_window(self, name: str, dims: tuple[str, ...], window: Window) -> None:
        if name == self.info.operands[-1][0]:
            raise SpecError(f"{self.function}: {name} is written: a window is for inputs")
        for d in (1, 2):
            size = self.size(dims[d])
            for unit in window.of(d)[:1]:
                if size > unit and size % unit:
                    raise SpecError(f"{self.function}: {dims[d]}={size} of {name} is no multiple of {unit}")
        sides = [(e.along, e.position) for e in window.edges] + [(3 - e.along, e.taps) for e in window.edges]
        for d, side in sides:
            size, digits = self.size(dims[d]), (*window.of(d), 1)
            whole = side.unit * side.count
            if (side.unit not in digits and side.unit < size) or (whole not in digits and whole < size):
                raise SpecError(f"{self.function}: '{side.text(dims[d])}' of {name} is none of its digits")

    @property
    def info(self) -> Function:
        return FUNCTIONS[self.function]

    @property
    def threading(self) -> str:
        """`serial`, `parallel`, `parallel 4` or `parallel 4 forked`."""
        words = ["serial" if self.serial else "parallel"]
        words += [str(self.threads)] if self.threads and not self.serial else []
        return " ".join([*words, "forked"] if self.forked else words)

    def size(self, dim: str) -> int:
        return self.dims[self.info.dims.index(dim)]

    def operand_shape(self, i: int) -> tuple[int, ...]:
        """Logical shape of operand `i`."""
        return tuple(self.size(d) for d in self.info.operands[i][1])

    def operand_names(self, i: int) -> tuple[str, ...]:
        return self.info.operands[i][1]

    def row_class(self, i: int) -> int | None:
        """The stride class of operand `i`: declared, or that of its row length; None in a packed layout."""
        t = self.operands[i]
        if t.layout.is_packed:
            return None
        if t.row_stride is not None:
            return t.row_stride
        return stride_class(self.operand_shape(i)[t.layout.innermost] * dtype_bytes(t.dtype))

    @property
    def sums(self) -> str:
        """The dtype in which the contraction is added up; the output's, where no such sums are known."""
        if self.then is not None:
            return self.then.sums
        *inputs, out = (t.dtype for t in self.operands)
        return accumulator(inputs, out) or out

    @property
    def flops(self) -> int:
        """Floating point (or integer) operations: a multiply and an add per point."""
        total = 2
        for d in self.dims:
            total *= d
        return total

    def canonical(self) -> Spec:
        """The same goal with every contiguity class in its shortest form (omitted where it is the row length's) and
        limits in a fixed order."""
        ops = []
        for i, t in enumerate(self.operands):
            own = stride_class(self.operand_shape(i)[t.layout.innermost] * dtype_bytes(t.dtype))
            drop = t.layout.is_packed or t.row_stride == own
            window = t.window.fitted(self.operand_shape(i)) if t.window else None
            ops.append(replace(t, row_stride=None if drop else t.row_stride, window=window))
        order = {m: i for i, m in enumerate(LIMITED)}
        limits = tuple(sorted(self.limits, key=lambda p: order[p[0]]))
        alone = self.serial or (self.threads == 1 and not self.forked)
        threads = 0 if alone else self.threads
        then = self.then and self.then.canonical(dict(zip(self.info.dims, self.dims, strict=True)))
        return replace(self, operands=tuple(ops), limits=limits, serial=alone, threads=threads, then=then)

    @property
    def plain(self) -> Spec:
        """The same goal without `then`: its output has the type of the sums."""
        if self.then is None:
            return self
        out = self.operands[-1]
        if out.dtype != self.then.sums:
            out = replace(out, dtype=self.then.sums, row_stride=None)
        return replace(self, operands=(*self.operands[:-1], out), then=None)

    def __str__(self) -> str:
        f = self.info
        parts = [str(list(self.dims))]
        parts += [t.text(names) for t, (_, names) in zip(self.operands, f.operands, strict=True)]
        parts.append(self.threading)
        if self.far:
            parts.append("far")
        if self.limits:
            parts.append("[" + ", ".join(f"{m}={v}" for m, v in self.limits) + "]")
        if self.then is not None:
            parts.append(str(self.then))
        return f"{self.function}({', '.join(parts)})"

    @staticmethod
    def parse(text: str) -> Spec:
        """Reads what `str` printed. Raises SpecError saying what is wrong."""
        t = text.strip()
        m = re.fullmatch(r"([A-Za-z_]\w*)\s*\((.*)\)", t, re.S)
        if not m:
            raise SpecError(f"cannot read the Spec '{excerpt(t)}': expected Function([sizes], (operand), ..., serial)")
        f = FUNCTIONS.get(m[1])
        if f is None:
            raise SpecError(f"unknown function '{m[1]}' (have {', '.join(FUNCTIONS)})")
        pieces = split_top(m[2])
        need = 1 + len(f.operands) + 1
        far = "far" in pieces[need:]
        thens = [p for p in pieces[need:] if p.startswith("then")]
        pieces = pieces[:need] + [p for p in pieces[need:] if p != "far" and p not in thens]
        if len(pieces) not in (need, need + 1) or len(thens) > 1:
            raise SpecError(
                f"{f.name} takes [sizes], {len(f.operands)} operands, serial or parallel, limits and then; "
                f"got {len(pieces) + len(thens)} parts"
            )
        if not re.fullmatch(rf"\[\s*(?:{NUMBER}\s*,\s*)*{NUMBER}\s*\]", pieces[0]):
            raise SpecError(f"{f.name}: cannot read the sizes '{pieces[0]}'")
        dims = tuple(int(x) for x in pieces[0][1:-1].split(","))
        operands = tuple(
            TensorSpec.parse(p, names) for p, (_, names) in zip(pieces[1 : need - 1], f.operands, strict=True)
        )
        threading = re.fullmatch(rf"(serial)|parallel(?:\s+({NUMBER}))?(\s+forked)?", pieces[need - 1])
        if not threading:
            raise SpecError(f"{f.name}: expected serial or parallel N, not '{pieces[need - 1]}'")
        limits: list[tuple[str, int]] = []
        if len(pieces) > need:
            body = pieces[need]
            limit = rf"\w+\s*=\s*{NUMBER}\s*"
            if not re.fullmatch(rf"\[\s*(?:{limit},\s*)*{limit}\]", body):
                raise SpecError(f"{f.name}: cannot read the limits '{body}'")
            for item in body[1:-1].split(","):
                name, _, value = item.partition("=")
                limits.append((name.strip(), int(value)))
        serial, threads, forked = bool(threading[1]), int(threading[2] or 0), bool(threading[3])
        then = Then.parse(thens[0]) if thens else None
        return Spec(f.name, dims, operands, serial, tuple(limits), far, threads, forked, then)


def matmul_spec(
    m: int,
    k: int,
    n: int,
    *,
    b: int = 1,
    dtype: str = "f32",
    lhs: str = "row_major",
    rhs: str = "row_major",
    accumulate: bool = False,
    const: Sequence[str] = (),
) -> Spec:
    """The Spec of a contiguous `b x (m x k) @ (k x n)` product in GL; `lhs`, `rhs`: row_major or col_major; const:
    operands that are constant."""
    f = FUNCTIONS["MatmulAccum" if accumulate else "Matmul"]
    ops = tuple(
        TensorSpec(dtype, "GL", Layout.parse(lay, names), const=name in const)
        for lay, (name, names) in zip((lhs, rhs, "row_major"), f.operands, strict=True)
    )
    return Spec(f.name, (b, m, k, n), ops)
