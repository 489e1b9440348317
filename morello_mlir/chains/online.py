"""The online form of a chain of a contraction, a softmax and another contraction: the columns of the softmax in
blocks, so that not even a row of scores exists as a whole.

    m = -max float; l = 0
    for every block of columns:
        scores  t0 = x0 @ x1, of the block
        update  m' = max(m, max t0); t0 = exp(t0 - m'); s = sum t0
        carry   c = exp(m - m'); l = c * l + s; m = m'
        rescale y = c * y
        weigh   y = y + t0 @ x2, of the block
    finish      y = y / l

The first block has a `start` in place of `update`, and nothing to carry or to rescale. (Milakov and Gimelshein,
arXiv 1805.02867; Dao et al., arXiv 2205.14135.) A maximum of nothing but -inf counts as the smallest float: such a
block weighs nothing, and a row of nothing else is 0 / 0, as in the other form, or 0 / 1 where the softmax makes zeros
of it.

Where weights are narrower than what they are computed in, they have a tile t1 of their own; where the output is (or
something else is done to its sums), these have one too, o, and `finish` makes the output of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..actions import OperandState, TableKey, matters, spec_of
from ..errors import ScheduleError
from ..nests import NestSpec, Operand
from ..nests.body import Body, BodyBuilder, Value
from ..nests.ops import element_bytes
from ..nests.spec import is_softmax
from ..spec import Layout, Spec, Then, dtype_bytes, stride_class
from ..targets import LINE, Target, ceil_div
from .space import RHS, Point, finishing, row_of, steps
from .spec import ChainSpec, is_dense

#: Values of each row that are carried along: the maximum, the one before, the sum, the block's sum, the correction.
STATE = ("m", "before", "l", "s", "c")
_SMALLEST = {"f32": float(np.finfo(np.float32).min), "f64": float(np.finfo(np.float64).min)}


@dataclass(frozen=True, slots=True)
class Softmax:
    """What `start` and `update` do to the inputs of a softmax's body, and `finish` to what is weighed and the sums.
    dtype: in which it is computed."""

    start: Body
    update: Body
    finish: Body
    dtype: str


def softmax_of(point: Point) -> Softmax | None:
    """The bodies of a chain that has an online form; None where it has none."""
    return _softmax_of(point.spec)


@lru_cache(maxsize=64)
def _softmax_of(spec: ChainSpec) -> Softmax | None:
    stages = spec.stages
    if len(stages) != 3 or [s.is_contraction for s in stages] != [True, False, True]:
        return None
    nest = stages[1].goal
    assert isinstance(nest, NestSpec)
    narrow, body = _without_cast(nest.body)
    exp = exponential_of(body)
    if exp is None or exp.dtype not in _SMALLEST or not nest.scan[-1]:
        return None
    # The output is stepped through by nests, which must know how it lies.
    last = stages[2].goal
    assert isinstance(last, Spec)
    if stages[2].reads[0] != "t1" or not is_dense(last, 2) or (last.then and last.then.extras):
        return None
    if last.sums != exp.dtype:
        return None
    first, others = (_softmax(nest, exp, narrow, k) for k in (None, len(nest.inputs)))
    # Whether rows of nothing but -inf are zeros, and not NaN.
    safe = body.values[body.outputs[0]].op == "select"
    return Softmax(first, others, _finish(last.then, exp.dtype, safe), exp.dtype)


def _without_cast(body: Body) -> tuple[str, Body]:
    """The type of the output, and the body of what is cast to it at last, if anything is."""
    out = body.values[body.outputs[0]]
    if len(body.outputs) == 1 and out.op == "cast":
        return out.dtype, Body(body.values, out.args)
    return out.dtype, body


def exponential_of(body: Body) -> Value | None:
    """exp(x - max x) where `body` is that over its sum; or is that but for rows whose maximum is -inf, which are 0, as
    frontends do for attention to nothing. None of others."""
    v, out = body.values, body.outputs[0]
    if len(body.outputs) != 1 or len(body.reductions) != 2:
        return None
    if v[out].op == "select":
        masked, zero, out = v[out].args
        m = v[masked].args[0] if v[masked].op == "cmp" else masked
        if not _is(v, masked, "cmp", "oeq") or not _is(v, zero, "const", "0.0") or v[m].op != "reduce_max":
            return None
        if not _is(v, v[masked].args[1], "const", "-inf"):
            return None
        body = Body(v[: out + 1], (out,))
        if m not in body.depends(out):
            return None
    return v[v[out].args[0]] if is_softmax(body) else None


def _is(values: Sequence[Value], at: int, op: str, attr: str) -> bool:
    return values[at].op == op and values[at].attr == attr


def _finish(then: Then | None, dtype: str, safe: bool) -> Body:
    """What is weighed over the sums, and `then` of that; safe: these are 1 where they are 0, as nothing else is than
    what weighs nothing."""
    b = BodyBuilder()
    y, total = b.input(0, dtype), b.input(1, dtype)
    if safe:
        total = b.op("select", b.cmp("oeq", total, b.const(0, dtype)), b.const(1, dtype), total)
    made = [b.op("div", y, total)]
    if then is not None:
        quotient = made[0]
        made = []
        for value in then.body.values:
            made.append(quotient if value.op == "input" else b.add(value, [made[a] for a in value.args]))
        made = [made[then.body.outputs[0]]]
    return b.build(made)


def _softmax(nest: NestSpec, exp: Value, narrow: str, before: int | None) -> Body:
    """exp(x - m) in the type `narrow`, m and the sum, m being the largest of x, the smallest float and, if `before`
    says so, that input."""
    v = nest.body.values
    x, largest = v[exp.args[0]].args
    dtype, kind = v[x].dtype, v[largest].op.removeprefix("reduce_")
    b = BodyBuilder()
    made: dict[int, int] = {}
    for at in sorted(nest.body.depends(x)):
        made[at] = b.add(v[at], [made[a] for a in v[at].args])
    least = b.const(_SMALLEST[dtype], dtype) if before is None else b.input(before, dtype)
    m = b.op(kind, b.reduce(kind, made[x]), least)
    weights = b.op("exp", b.op("sub", made[x], m))
    return b.build([b.cast(weights, narrow), m, b.reduce("sum", weights)])


def _bodies(dtype: str) -> dict[str, Body]:
    """Those that do not depend on the softmax."""
    b = BodyBuilder()
    m, new, total, part = (b.input(k, dtype) for k in range(4))
    c = b.op("exp", b.op("sub", m, new))
    carry = b.build([c, b.op("add", b.op("mul", total, c), part), new])
    b = BodyBuilder()
    return {"carry": carry, "rescale": b.build([b.op("mul", b.input(0, dtype), b.input(1, dtype))])}


@dataclass(frozen=True, slots=True)
class Room:
    """Scratch of the online form: rows of so many columns, `row` elements apart."""

    rows: int
    columns: int
    row: int
    dtype: str

    @property
    def lines(self) -> int:
        return int(ceil_div(self.rows * self.row * element_bytes(self.dtype), LINE))

    def operand(self, home: str, width: int) -> Operand:
        """How a nest reads the first `width` columns."""
        return Operand(self.dtype, home, (0, self.row if self.rows > 1 else 0, 1 if width > 1 else 0))


@dataclass(frozen=True)
class Form:
    """The online form of a tile: `size` columns at once, in `home`."""

    point: Point
    size: int
    home: str
    target: Target

    @property
    def softmax(self) -> Softmax:
        found = softmax_of(self.point)
        assert found is not None
        return found

    @property
    def columns(self) -> int:
        return self.point.spec.stages[0].shape[2]

    @property
    def rest(self) -> int:
        return self.columns % self.size

    def seen(self) -> list[int]:
        """Of every tile of the rows among which this one is: how many columns it looks at."""
        mask, rows = self.point.spec.mask, self.point.dims[1]
        if mask is None or not self.point.skips:
            return [self.columns]
        low, high = self.point.rows
        return [
            mask.columns(first + rows - 1, self.columns) for first in range(low, max(low + 1, high - rows + 1), rows)
        ]

    @property
    def dtype(self) -> str:
        """In which the softmax is computed, and what is weighed added up."""
        return self.softmax.dtype

    @property
    def weights(self) -> str:
        """Where the weights are: in the place of the scores, if they are of one type."""
        stages = self.point.spec.stages
        return "t0" if stages[0].dtype == stages[1].dtype else "t1"

    @property
    def weighed(self) -> str:
        """Where what is weighed is added up: in the output, if that is nothing else."""
        goal = self.point.contraction(2)
        return "y" if goal.then is None and goal.operands[2].dtype == self.dtype else "o"

    @property
    def rooms(self) -> dict[str, Room]:
        """What is in scratch, in order."""
        stages = self.point.spec.stages
        rows = self.point.dims[1]

        def tile(columns: int, dtype: str) -> Room:
            return Room(rows, columns, row_of(columns, dtype, rows), dtype)

        tiles = {"t0": tile(self.size, stages[0].dtype)}
        if self.weights == "t1":
            tiles["t1"] = tile(self.size, stages[1].dtype)
        if self.weighed == "o":
            tiles["o"] = tile(stages[2].shape[2], self.dtype)
        return tiles | dict.fromkeys(STATE, Room(rows, 1, 1, self.dtype))

    @property
    def lines(self) -> int:
        """Of all rooms."""
        return sum(room.lines for room in self.rooms.values())

    @property
    def left(self) -> int:
        """Lines of L2 that are left for the parts."""
        return steps(self.point.l2 - (self.lines if self.home == "L2" else 0), self.target)

    def check(self) -> None:
        """Raises ScheduleError where there is no such form."""
        label = f"online n by {self.size}"
        if softmax_of(self.point) is None:
            raise ScheduleError(f"{label}: it is no chain of a contraction, a softmax over n and a contraction")
        if self.point.dims[0] != 1:
            raise ScheduleError(f"{label}: tile b by 1 first")
        if self.size >= self.columns:
            raise ScheduleError(f"{label}: the size must be less than n={self.columns}")
        if self.size % self.width:
            raise ScheduleError(f"{label}: n is packed in panels of {self.width}: the size must be a multiple of it")
        if self.left < 0:
            raise ScheduleError(f"{label}: the scores do not fit L2, which has {self.point.l2} lines left")

    @property
    def is_legal(self) -> bool:
        """What `check` checks."""
        try:
            self.check()
        except ScheduleError:
            return False
        return True

    @property
    def width(self) -> int:
        """Of the panels that blocks of columns start at."""
        return self.contraction("scores", self.size)[0].pack_width("n")

    # ------------------------------------------------------------ goals

    def contraction(self, part: str, width: int) -> tuple[TableKey, dict[str, int], dict[str, int]]:
        """Where the tables have `scores` or `weigh` of `width` columns: key, sizes, and what it may take."""
        at = 0 if part == "scores" else 2
        key, dims = self.point.whole(at, self.target)
        if part == "scores":
            key = replace(key, function=self.point.contraction(at).function)
        key = self._with_room(key, 2, "t0") if part == "scores" else self._with_room(key, 0, self.weights)
        if part == "scores" and key.dtype_of(2) != self.rooms["t0"].dtype:
            # Sums of another type lie in rows of their own.
            stride = stride_class(self.size * dtype_bytes(key.dtype_of(2)))
            key = key.with_operand(2, replace(key.operands[2], stride=stride))
        if part == "weigh" and self.weighed == "o":
            key = self._with_room(key, 2, "o")
        key = self.point.with_packs(at, key)
        dims = {**dims, "m": self.point.dims[1], "n" if part == "scores" else "k": width}
        return key, dims, {**self.target.limits, "L2": self.left}

    def _with_room(self, key: TableKey, operand: int, name: str) -> TableKey:
        stride = stride_class(self.rooms[name].row * dtype_bytes(self.rooms[name].dtype))
        state = OperandState(self.home, Layout.permutation((0, 1, 2)), stride, dtype=key.operands[operand].dtype)
        return key.with_operand(operand, state)

    def goal(self, part: str, width: int, first: bool = False) -> Spec | NestSpec:
        """What is left of a part. first: of the first block, where `weigh` overwrites."""
        if part in ("scores", "weigh"):
            key, dims, left = self.contraction(part, width)
            if first:
                key = replace(key, function=key.function.removesuffix("Accum"))
            keep = {m: v for m, v in left.items() if v != self.target.limits[m] and matters(key, m)}
            spec = spec_of(key, dims, keep)
            return finishing(spec, self.point.contraction(0).then if part == "scores" else None, self.rooms["t0"].row)
        return self.nest(part, width)

    def nest(self, part: str, width: int) -> NestSpec:
        """As `goal`, of the parts that are nests: these do not depend on what has been packed."""
        return self._softmax_goal(part, width) if part in ("start", "update") else self._rows_goal(part)

    def _held(self, alias: int | None = None) -> Operand:
        """A value of every row."""
        return Operand(self.dtype, self.home, (0, 1 if self.point.dims[1] > 1 else 0, 0), alias)

    def _softmax_goal(self, part: str, width: int) -> NestSpec:
        nest = self.point.spec.stages[1].goal
        assert isinstance(nest, NestSpec)
        reads = self.point.spec.stages[1].reads
        at = reads.index("t0")
        rows = self.point.dims[1]
        scores, weights = (self.rooms[name].operand(self.home, width) for name in ("t0", self.weights))
        inputs = [scores if i == at else replace(o, strides=o.strides[-3:]) for i, o in enumerate(nest.inputs)]
        inputs += [self._held()] if part == "update" else []
        outputs = [replace(weights, alias=at if self.weights == "t0" else None), self._held(), self._held()]
        body = self.softmax.start if part == "start" else self.softmax.update
        return NestSpec((1, rows, width), (False, False, True), (*inputs, *outputs), body)

    def _rows_goal(self, part: str) -> NestSpec:
        rows, last = self.point.dims[1], self.point.spec.stages[2]
        body = self.softmax.finish if part == "finish" else _bodies(self.dtype)[part]
        if part == "carry":
            held = [self._held()] * 4
            out = [self._held(), self._held(2), self._held(0)]
            flat = tuple(replace(o, strides=o.strides[1:2]) for o in (*held, *out))
            return NestSpec((rows,), (False,), flat, body)
        columns = last.shape[2]
        y = Operand(last.dtype, "GL", (0, columns if rows > 1 else 0, 1 if columns > 1 else 0))
        sums = y if self.weighed == "y" else self.rooms["o"].operand(self.home, columns)
        made = replace(sums, alias=0) if part == "rescale" or self.weighed == "y" else y
        return NestSpec((1, rows, columns), (False,) * 3, (sums, self._held(), made), body)

    # ------------------------------------------------------------ names of operands

    def operands(self, part: str) -> tuple[str, ...]:
        """The names of the operands of a part, as its op has them: x0, ..., y; t0, t1, o; and those of STATE."""
        stages = self.point.spec.stages
        if part == "scores":
            lhs, rhs, *extras = stages[0].reads
            return (lhs, rhs, "t0", *extras)
        if part == "weigh":
            return (self.weights, stages[2].reads[RHS], self.weighed)
        if part in ("start", "update"):
            more = ("m",) if part == "update" else ()
            return (*stages[1].reads, *more, self.weights, "before" if part == "update" else "m", "s" if more else "l")
        if part == "carry":
            return ("m", "before", "l", "s", "c", "l", "m")
        if part == "rescale":
            return (self.weighed, "c", self.weighed)
        return (self.weighed, "l", "y")
