"""The goal of a nest: one iteration space, strided operands and a body.

Softmax([8, 2048 scan], (f32, GL, [2048, 1]), (f32, GL, [2048, 1]),
        "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cached import cached_property
from ..errors import SpecError, excerpt
from ..hashed import Hashed
from ..spec.layout import NUMBER
from ..spec.spec import MAX_STEPS, MAX_THREADS, split_top
from .body import Body, Value
from .borders import Border, number_of
from .evaluate import evaluate
from .ops import element_bytes
from .tables import Axis, apart, reach
from .tables import parse as parse_axes
from .tables import to_text as axes_text

#: Where operands may be: outside, or in scratch of a schedule, which says how near that stays.
MEMORIES = ("GL", "L2", "L1")
#: Names of what nests compute; see `NestSpec.function`.
FUNCTIONS = ("Map", "Reduce", "Softmax", "Compose")
#: Dims of the largest nests.
MAX_DIMS = 16


@dataclass(frozen=True, slots=True)
class Operand:
    """strides: elements between neighbours along each dim of the nest; 0 where it does not vary. alias: an output that
    lies just where input number `alias` does, whose elements it overwrites; None: it shares no memory with an input.

    borders: of an input, the axes along which it ends before the nest does (see `Border`): what lies beyond is `around`
    wherever it is read. first: where the first point of such an input would be, in elements from where it begins:
    beyond a border this is a place that does not exist, and may be negative.

    axes: of an input that is a table, what the body says the places along (see `tables`).
    """

    dtype: str
    memory: str
    strides: tuple[int, ...]
    alias: int | None = None
    borders: tuple[Border, ...] = ()
    around: float | int = 0
    first: int = 0
    axes: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        element_bytes(self.dtype)
        if self.memory not in MEMORIES:
            raise SpecError(f"unknown memory '{self.memory}' (have {', '.join(MEMORIES)})")
        if any(s < 0 for s in self.strides):
            raise SpecError(f"strides must not be negative: {list(self.strides)}")
        if self.around != self.around:
            raise SpecError("what is around an operand must not be NaN")
        if self.axes and (self.borders or self.alias is not None):
            raise SpecError("a table has no borders, and overwrites nothing")
        if not self.borders:
            if self.first or self.around:
                raise SpecError("only an operand with borders has a first point elsewhere, and something around")
            return
        for border in self.borders:
            if len(border.steps) != len(self.strides):
                raise SpecError(f"a border has {len(self.strides)} steps, one for each dim: {border}")
            self._unit(border)
        if self.alias is not None or any(
            sum(b.steps[d] > 0 for b in self.borders) > 1 for d in range(len(self.strides))
        ):
            raise SpecError(
                "an operand that overwrites another has no borders, and a dim steps along one of them at most"
            )

    def _unit(self, border: Border) -> int:
        """Elements between neighbours along a border's axis; 0 where nothing moves along it."""
        units = {s / step for s, step in zip(self.strides, border.steps, strict=True) if step}
        if len(units) > 1 or any(u < 1 or u % 1 for u in units):
            raise SpecError(f"the strides {list(self.strides)} do not go along with {border}")
        return int(min(units, default=0))

    @property
    def varies(self) -> frozenset[int]:
        """The dims along which it has more than one element."""
        return frozenset(d for d, s in enumerate(self.strides) if s)

    def span(self, dims: Sequence[int]) -> int:
        """Elements from the first to the last, both included; with borders, from where it begins on; of a table, to its
        last place."""
        if 0 in dims:
            return 0
        last = self.first + sum((n - 1) * s for n, s in zip(dims, self.strides, strict=True)) + reach(self.axes)
        for border in self.borders:
            beyond = border.start + border.reach(dims) - (border.extent - 1)
            last -= max(0, beyond) * self._unit(border)
        return 1 + max(0, last)

    def elements(self, dims: Sequence[int]) -> int:
        """How many elements are met, each once (windows that overlap count once)."""
        count = math.prod(n for n, s in zip(dims, self.strides, strict=True) if s)
        return min(count, self.span(dims))

    def picked(self, kept: Sequence[int]) -> Operand:
        """Of the dims `kept`, in that order."""
        borders = tuple(b.picked(kept) for b in self.borders)
        return replace(self, strides=tuple(self.strides[d] for d in kept), borders=borders)

    def widened(self, stride: int) -> Operand:
        """With one more dim, the last."""
        return replace(self, strides=(*self.strides, stride), borders=tuple(b.widened() for b in self.borders))

    def moved(self, d: int, by: int) -> Operand:
        """As it is from position `by` along dim `d` on."""
        return replace(self, borders=tuple(b.moved(d, by) for b in self.borders))

    def __str__(self) -> str:
        alias = "" if self.alias is None else f", is x{self.alias}"
        borders = "".join(f", {b}" for b in self.borders)
        borders += f", else {self.around}, first {self.first}" if borders else ""
        axes = f", {axes_text(self.axes)}" if self.axes else ""
        return f"({self.dtype}, {self.memory}, {list(self.strides)}{alias}{borders}{axes})"

    @staticmethod
    def parse(text: str) -> Operand:
        """Reads what `str` printed. Raises SpecError."""
        t = text.strip()
        pieces = split_top(t[1:-1]) if t.startswith("(") and t.endswith(")") else []
        if len(pieces) > 4 and (borders := [b for p in pieces[3:-2] if (b := Border.parse(p))]):
            around = re.fullmatch(r"else\s+(\S+)", pieces[-2])
            first = re.fullmatch(rf"first\s+(-?{NUMBER})", pieces[-1])
            if around and first and len(borders) == len(pieces) - 5:
                there = number_of(around[1], pieces[0])
                strides = _numbers(pieces[2], "strides")
                return Operand(pieces[0], pieces[1], strides, None, tuple(borders), there, int(first[1]))
        if len(pieces) == 4 and (axes := parse_axes(pieces[3])):
            return Operand(pieces[0], pieces[1], _numbers(pieces[2], "strides"), axes=axes)
        alias = re.fullmatch(rf"is\s+x({NUMBER})", pieces[3]) if len(pieces) == 4 else None
        if len(pieces) not in (3, 4) or (len(pieces) == 4 and not alias):
            raise SpecError(
                f"operand '{t}': expected (dtype, memory, [strides]), or with 'is x0' where it overwrites x0, or with "
                "'border [steps] from N of N, ..., else VALUE, first N', or with 'axes [strides] of [extents]'"
            )
        return Operand(pieces[0], pieces[1], _numbers(pieces[2], "strides"), int(alias[1]) if alias else None)


@dataclass(frozen=True)
class NestSpec(Hashed):
    """A goal. dims: sizes; scan: which dims are reduced (the others are parallel); operands: the inputs of the body,
    then its outputs. serial, threads, far: as in Spec (0 threads: as many as this process may use; far: operands in GL
    are beyond the last-level cache). among: threads that work on parts like this one at the same time.

    An output has a stride along every parallel dim, and along the scan dims along which its value varies (no two points
    write one element). It may have one along others: there its value is repeated, if it is made of reductions or is one
    that an earlier output is as well (by whose name it is called). Raises SpecError where that is not so, or something
    does not fit.
    """

    dims: tuple[int, ...]
    scan: tuple[bool, ...]
    operands: tuple[Operand, ...]
    body: Body
    serial: bool = True
    threads: int = 0
    far: bool = False
    among: int = 1

    def __post_init__(self) -> None:
        if not self.dims or len(self.dims) > MAX_DIMS:
            raise SpecError(f"a nest has 1 to {MAX_DIMS} dims, not {len(self.dims)}")
        if any(n < 0 for n in self.dims):
            raise SpecError(f"negative size in {list(self.dims)}")
        if math.prod(self.dims) > MAX_STEPS:
            raise SpecError(f"{list(self.dims)} is too large: more than {MAX_STEPS:,} steps")
        if len(self.scan) != len(self.dims):
            raise SpecError("every dim is parallel or scan")
        if any(len(o.strides) != len(self.dims) for o in self.operands):
            raise SpecError(f"every operand has {len(self.dims)} strides, one for each dim")
        if any(o.borders for o in self.operands[len(self.operands) - len(self.body.outputs) :]):
            raise SpecError("an output has no borders")
        if any(o.axes for o in self.operands[len(self.operands) - len(self.body.outputs) :]):
            raise SpecError("an output is no table")
        if len(self.operands) < len(self.body.outputs):
            raise SpecError(
                f"the body has {len(self.body.outputs)} outputs, and there are {len(self.operands)} operands"
            )
        if not 0 <= self.threads <= MAX_THREADS:
            raise SpecError(f"{self.threads} threads are not between 1 and {MAX_THREADS}")
        if not 1 <= self.among <= MAX_THREADS:
            raise SpecError(f"among {self.among} is not between 1 and {MAX_THREADS}")
        if self.serial and self.threads > 1:
            raise SpecError("a serial goal has one thread")
        self._check_body()
        for k in range(len(self.body.outputs)):
            self._check_output(k)

    def _check_body(self) -> None:
        for k, at in self.body.inputs.items():
            if k >= len(self.inputs):
                raise SpecError(f"the body reads x{k}, and there are {len(self.inputs)} inputs")
            if self.body.values[at].dtype != self.inputs[k].dtype:
                raise SpecError(f"x{k} is {self.inputs[k].dtype}, and {self.body.values[at].dtype} in the body")
        for at in self.body.gathers:
            self._check_gather(self.body.values[at])
        for value in self.body.values:
            if value.op == "input" and self.inputs[int(value.attr or 0)].axes:
                raise SpecError(f"x{value.attr} is a table: say gather(x{value.attr}, PLACE)")
            if value.op == "index" and int(value.attr or 0) >= len(self.dims):
                raise SpecError(f"the body has index({value.attr}), and there are {len(self.dims)} dims")

    def _check_gather(self, value: Value) -> None:
        have = len(self.inputs[int(value.attr or 0)].axes)
        if len(value.args) != have:
            raise SpecError(f"x{value.attr} has {have} axes, and {len(value.args)} places in the body")
        if any(self.body.values[v].reduces for a in value.args for v in self.body.depends(a)):
            raise SpecError(f"a place in x{value.attr} depends on a reduction of the same nest")

    def _check_output(self, k: int) -> None:
        out, at = self.outputs[k], self.body.outputs[k]
        if out.dtype != self.body.values[at].dtype:
            raise SpecError(f"output {k} is {out.dtype}, and {self.body.values[at].dtype} in the body")
        repeats = self.body.values[at].reduces and at not in self.body.outputs[:k]
        for d, n in enumerate(self.dims):
            if n > 1 and not out.strides[d] and (not self.scan[d] or d in self.varies[at]):
                raise SpecError(f"output {k} varies along d{d}, and has no stride there")
            if n > 1 and out.strides[d] and self.scan[d] and repeats:
                raise SpecError(f"output {k} is a reduction along d{d}, and has a stride there")
        # Written once each: a stride reaches over all that the smaller ones do.
        reach = 1
        for stride, n in sorted((s, n) for s, n in zip(out.strides, self.dims, strict=True) if s and n > 1):
            if stride < reach:
                raise SpecError(f"output {k} is written more than once at some elements: strides {list(out.strides)}")
            reach += (n - 1) * stride
        if out.alias is not None:
            if out.alias >= len(self.inputs):
                raise SpecError(f"output {k} is x{out.alias}, and there are {len(self.inputs)} inputs")
            same = self.inputs[out.alias]
            if same.axes:
                raise SpecError(f"output {k} is x{out.alias}, a table")
            if (same.dtype, same.strides) != (out.dtype, out.strides):
                raise SpecError(f"output {k} is x{out.alias}: types and strides must agree")

    # ------------------------------------------------------------ questions

    @property
    def inputs(self) -> tuple[Operand, ...]:
        return self.operands[: len(self.operands) - len(self.body.outputs)]

    @property
    def outputs(self) -> tuple[Operand, ...]:
        return self.operands[len(self.operands) - len(self.body.outputs) :]

    @property
    def scan_dims(self) -> tuple[int, ...]:
        return tuple(d for d, s in enumerate(self.scan) if s)

    @property
    def parallel_dims(self) -> tuple[int, ...]:
        return tuple(d for d, s in enumerate(self.scan) if not s)

    @cached_property
    def varies(self) -> tuple[frozenset[int], ...]:
        """By value of the body: the dims along which it varies."""
        return self.body.varies([o.varies for o in self.inputs], frozenset(self.scan_dims))

    def is_row(self, value: int) -> bool:
        """Whether `value` is the same along all scan dims (a reduction, or made of such): it fits registers."""
        return not self.varies[value].intersection(self.scan_dims)

    @property
    def function(self) -> str:
        """`Map`: without reductions; `Softmax`; `Reduce`: every output is made of reductions, none of which needs
        another; `Compose`: all others."""
        if not self.body.reductions:
            return "Map"
        if is_softmax(self.body):
            return "Softmax"
        row = not any(o.varies.intersection(self.scan_dims) for o in self.outputs)
        nested = any(len(self.body.depends(r).intersection(self.body.reductions)) > 1 for r in self.body.reductions)
        return "Reduce" if row and not nested else "Compose"

    @property
    def threading(self) -> str:
        """`serial`, `parallel` or `parallel 4`."""
        return "serial" if self.serial else f"parallel {self.threads}" if self.threads else "parallel"

    @property
    def bytes(self) -> int:
        """Of all operands, what is overwritten once."""
        return sum(o.elements(self.dims) * element_bytes(o.dtype) for o in self.met if o.alias is None)

    @cached_property
    def met(self) -> tuple[Operand, ...]:
        """The operands as cache lines see them: of tables, rows that are all elsewhere (`tables.apart`)."""
        if not self.body.gathers:
            return self.operands
        out = list(self.operands)
        for at in self.body.gathers:
            k, o = (number := int(self.body.values[at].attr or 0)), out[number]
            along = frozenset().union(*(self.varies[a] for a in self.body.values[at].args))
            out[k] = replace(o, axes=(), strides=apart(o.strides, o.axes, self.dims, along, element_bytes(o.dtype)))
        return tuple(out)

    def evaluate(self, arrays: Sequence[np.ndarray], *, wide: bool = False) -> list[np.ndarray]:
        """The outputs of the nest, of the sizes `shape` says.

        arrays: the inputs as they lie: arrays (flattened) of which the operands' strides pick the elements.
        """
        views = []
        for array, o in zip(arrays, self.inputs, strict=True):
            flat = np.ascontiguousarray(array).reshape(-1)
            if flat.size < o.span(self.dims):
                raise SpecError(f"an input has {flat.size} elements, and {o.span(self.dims)} are met")
            if o.borders:
                views.append(_bordered(flat, o, self.dims))
                continue
            steps = tuple(s * flat.itemsize for s in o.strides)
            axes = o.axes if len(views) in self.body.inputs else ()
            steps += tuple(a.stride * flat.itemsize for a in axes)
            shape = (*self.dims, *(a.extent for a in axes))
            views.append(np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False))
        if not views:
            views = [np.empty(self.dims, np.int8)]
        out = evaluate(self.body, views, self.scan_dims, wide=wide)
        return [np.ascontiguousarray(np.broadcast_to(o, self.shape(k))) for k, o in enumerate(out)]

    def shape(self, k: int) -> list[int]:
        """The sizes of output `k` along all dims: 1 along scan dims along which it has no stride."""
        strides = self.outputs[k].strides
        return [n if step or not s else 1 for n, s, step in zip(self.dims, self.scan, strides, strict=True)]

    # ------------------------------------------------------------ forms

    def canonical(self) -> NestSpec:
        """The same goal without dims of size one, with dims merged that step as one in every operand, the parallel dims
        first, in the order in which they step through the outputs, and the body in its canonical form."""
        from .canonical import canonical

        return canonical(self)

    def with_dims(self, dims: Sequence[int]) -> NestSpec:
        """The same nest of other sizes."""
        return replace(self, dims=tuple(dims))

    def __str__(self) -> str:
        sizes = ", ".join(f"{n} scan" if s else str(n) for n, s in zip(self.dims, self.scan, strict=True))
        parts = [f"[{sizes}]", *map(str, self.operands), f'"{self.body}"', self.threading]
        parts += ["far"] if self.far else []
        parts += [f"among {self.among}"] if self.among > 1 else []
        return f"{self.function}({', '.join(parts)})"

    @staticmethod
    def parse(text: str) -> NestSpec:
        """Reads what `str` printed. Raises SpecError saying what is wrong."""
        t = text.strip()
        m = re.fullmatch(
            r'([A-Za-z_]\w*)\s*\(([^"]*),\s*"([^"]*)"\s*,\s*(serial|parallel(?:\s+[0-9]{1,9})?)(\s*,\s*far)?(?:\s*,\s*among\s+([0-9]{1,9}))?\s*\)',
            t,
            re.S,
        )
        if not m:
            raise SpecError(
                f"cannot read the Spec '{excerpt(t)}': expected Function([sizes], (operand), ..., \"body\", serial)"
            )
        sizes, *operands = split_top(m[2])
        dims, scan = _sizes(sizes)
        found = [Operand.parse(o) for o in operands]
        body = Body.parse(m[3], [o.dtype for o in found])
        threads = int(m[4].split()[1]) if " " in m[4].strip() else 0
        spec = NestSpec(dims, scan, tuple(found), body, m[4] == "serial", threads, bool(m[5]), int(m[6] or 1))
        if spec.function != m[1]:
            raise SpecError(f"this body makes it a {spec.function}, not a {m[1]}")
        return spec


def _bordered(flat: np.ndarray, o: Operand, dims: Sequence[int]) -> np.ndarray:
    """What each point reads of an operand with borders."""
    at, inside = np.full([1] * len(dims), o.first), np.full([1] * len(dims), True)
    along = [np.arange(n).reshape([-1 if e == d else 1 for e in range(len(dims))]) for d, n in enumerate(dims)]
    for stride, positions in zip(o.strides, along, strict=True):
        at = at + stride * positions
    for border in o.borders:
        place = border.start + sum(step * positions for step, positions in zip(border.steps, along, strict=True))
        inside = inside & (place >= 0) & (place < border.extent)
    return np.where(inside, flat[np.where(inside, at, 0)], np.array(o.around).astype(flat.dtype))


def is_nest(text: str) -> bool:
    """Whether the text of a Spec is that of a nest."""
    return text.strip().partition("(")[0].strip() in FUNCTIONS


def _sizes(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    dims, scan = [], []
    for item in text.strip()[1:-1].split(",") if re.fullmatch(r"\[.*\]", text.strip(), re.S) else [""]:
        m = re.fullmatch(rf"\s*({NUMBER})(\s+scan)?\s*", item)
        if not m:
            raise SpecError(f"cannot read the sizes '{text.strip()}'")
        dims.append(int(m[1]))
        scan.append(bool(m[2]))
    return tuple(dims), tuple(scan)


def _numbers(text: str, what: str) -> tuple[int, ...]:
    if not re.fullmatch(rf"\[\s*(?:{NUMBER}\s*,\s*)*{NUMBER}\s*\]", text):
        raise SpecError(f"cannot read the {what} '{text}'")
    return tuple(int(x) for x in text[1:-1].split(","))


def is_softmax(body: Body) -> bool:
    """Whether it is exp(x - max x) over its sum, of any x."""
    if len(body.outputs) != 1 or len(body.reductions) != 2:
        return False
    v = body.values
    div = v[body.outputs[0]]
    if div.op != "div" or v[div.args[1]].op != "reduce_sum" or v[div.args[1]].args != div.args[:1]:
        return False
    exp = v[div.args[0]]
    sub = v[exp.args[0]] if exp.op == "exp" else exp
    if sub.op != "sub" or v[sub.args[1]].op not in ("reduce_max", "reduce_maxnum"):
        return False
    return v[sub.args[1]].args == sub.args[:1]
