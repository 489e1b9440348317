"""What a `morello.nest` computes, as plain loops over scalars: the reference of a check, and what runs without us."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, math, memref, scf

from morello_mlir.nests import NestSpec, Value
from morello_mlir.nests.borders import Border
from morello_mlir.nests.ops import REDUCE, is_float

from ..private import strided_view

_FLOAT: dict[str, Callable[..., Any]] = {
    "add": arith.addf,
    "sub": arith.subf,
    "mul": arith.mulf,
    "div": arith.divf,
    "rem": arith.remf,
    "neg": arith.negf,
    "max": arith.maximumf,
    "min": arith.minimumf,
    "maxnum": arith.maxnumf,
    "minnum": arith.minnumf,
    "abs": math.absf,
    "pow": math.powf,
    "round": math.roundeven,
    "roundaway": math.round,
    **{
        name: getattr(math, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh"),
            *("atan", "atan2", "erf", "floor", "ceil", "trunc", "fma", "copysign"),
        )
    },
}
_INT: dict[str, Callable[..., Any]] = {
    "add": arith.addi,
    "sub": arith.subi,
    "mul": arith.muli,
    "div": arith.divsi,
    "rem": arith.remsi,
    "udiv": arith.divui,
    "urem": arith.remui,
    "and": arith.andi,
    "or": arith.ori,
    "xor": arith.xori,
    "shl": arith.shli,
    "shr": arith.shrsi,
    "ushr": arith.shrui,
    "max": arith.maxsi,
    "min": arith.minsi,
    "umax": arith.maxui,
    "umin": arith.minui,
    "abs": math.absi,
}
_COMBINE = {"sum": "add", "prod": "mul"}


def to_loops(op: Any, spec: NestSpec) -> None:
    """Replaces a `morello.nest` op."""
    with op.location, ir.InsertionPoint(op):
        _Loops(spec, list(op.operands)).make()
    op.erase()


def _kind(dtype: str) -> Any:
    return ir.Type.parse(dtype)


class _Loops:
    def __init__(self, spec: NestSpec, operands: Sequence[Any]):
        self.spec, self.body = spec, spec.body
        index = ir.IndexType.get()
        self._numbers = {n: arith.constant(index, n) for n in sorted({0, 1, *spec.dims})}
        self.views = [_view(v, spec, k) for k, v in enumerate(operands)]
        self.rows: dict[int, Any] = {}
        self.at: list[Any] = [self._numbers[0]] * len(spec.dims)

    def make(self) -> None:
        self._around(self.spec.parallel_dims, [], lambda _: self._row())

    def _around(self, dims: Sequence[int], carried: list[Any], inner: Callable[[list[Any]], Any]) -> list[Any]:
        """Loops over `dims` that carry values along; inner: the new ones, given those so far."""
        if not dims:
            return list(inner(carried) or [])
        numbers = self._numbers
        loop = scf.ForOp(numbers[0], numbers[self.spec.dims[dims[0]]], numbers[1], carried)
        with ir.InsertionPoint(loop.body):
            self.at[dims[0]] = loop.induction_variable
            scf.YieldOp(self._around(dims[1:], list(loop.inner_iter_args), inner))
        self.at[dims[0]] = numbers[0]
        return list(loop.results)

    def _row(self) -> None:
        """All of one row: the reductions in order, what is written all over it, and what is written once."""
        self.rows = {}
        for at in self.body.reductions:
            self.rows[at] = self._reduction(at)
        outputs = list(enumerate(self.spec.outputs))
        scan = self.spec.scan_dims
        full = [k for k, o in outputs if any(o.strides[d] and self.spec.dims[d] > 1 for d in scan)]
        row = [(k, self._value(self.body.outputs[k], dict(self.rows))) for k, _ in outputs if k not in full]
        if full:
            self._around(scan, [], lambda _: self._store(full))
        for k, value in row:
            memref.StoreOp(value, self._output(k), self.at)

    def _store(self, outputs: list[int]) -> None:
        known = dict(self.rows)
        for k, value in [(k, self._value(self.body.outputs[k], known)) for k in outputs]:
            memref.StoreOp(value, self._output(k), self.at)

    def _output(self, k: int) -> Any:
        return self.views[len(self.spec.inputs) + k]

    # ------------------------------------------------------------ reductions

    def _reduction(self, at: int) -> Any:
        value = self.body.values[at]
        name = value.op.removeprefix(REDUCE)
        if name.startswith("arg"):
            return self._position(value, name[3:6], name.endswith("num"))
        wide = "f32" if value.dtype in ("f16", "bf16") else value.dtype
        start = arith.constant(_kind(wide), _start(name, wide))

        def step(carried: list[Any]) -> list[Any]:
            element = self._value(value.args[0], dict(self.rows))
            element = element if wide == value.dtype else arith.extf(_kind(wide), element)
            return [_elementwise(_COMBINE.get(name, name), wide, [carried[0], element])]

        (total,) = self._around(self.spec.scan_dims, [start], step)
        return total if wide == value.dtype else arith.truncf(_kind(value.dtype), total)

    def _position(self, value: Value, extremum: str, passes_over: bool) -> Any:
        """The position of an extremum; see `ops.REDUCTIONS`."""
        dtype = self.body.values[value.args[0]].dtype
        last = (1 << (31 if value.dtype == "i32" else 63)) - 1
        starts = [
            arith.constant(_kind(dtype), _start(extremum, dtype)),
            arith.constant(_kind(value.dtype), 0 if passes_over else last),
        ]

        def step(carried: list[Any]) -> list[Any]:
            known = dict(self.rows)
            v, p = (self._value(a, known) for a in value.args)
            better = _better(extremum, dtype, v, carried[0], passes_over)
            same = arith.andi(_same(dtype, v, carried[0]), arith.cmpi(arith.CmpIPredicate.slt, p, carried[1]))
            take = better if passes_over else arith.ori(better, same)
            if passes_over:  # what is as good as nothing has no position
                real = _better(extremum, dtype, v, starts[0], True)
                take = arith.ori(better, arith.andi(real, same))
            return [arith.select(take, v, carried[0]), arith.select(take, p, carried[1])]

        return self._around(self.spec.scan_dims, starts, step)[1]

    # ------------------------------------------------------------ values at a point

    def _value(self, at: int, known: dict[int, Any]) -> Any:
        """The value number `at` where the loops are."""
        todo = [at]
        while todo:
            here = todo[-1]
            value = self.body.values[here]
            missing = [] if here in known else [a for a in value.args if a not in known]
            if missing:
                todo += missing
                continue
            if here not in known:
                known[here] = self._emit(value, [known[a] for a in value.args])
            todo.pop()
        return known[at]

    def _emit(self, value: Value, args: list[Any]) -> Any:
        kind = _kind(value.dtype)
        if value.op == "input":
            return self._element(int(value.attr or 0), kind)
        if value.op == "gather":
            index = ir.IndexType.get()
            at = [arith.index_cast(index, a) for a in args]
            return memref.LoadOp(self.views[int(value.attr or 0)], [*self.at, *at]).result
        if value.op == "const":
            number = value.number if is_float(value.dtype) else int(value.number)
            return arith.constant(kind, number)
        if value.op == "index":
            return arith.index_cast(kind, self.at[int(value.attr or 0)])
        if value.op == "select":
            return arith.select(*args)
        if value.op == "cmp":
            return _compare(str(value.attr), *args)
        if value.op == "bitcast":
            return arith.bitcast(kind, args[0])
        if value.op in ("cast", "ucast"):
            return _cast(args[0], kind, value.op == "ucast")
        return _elementwise(value.op, value.dtype, args)

    def _element(self, k: int, kind: Any) -> Any:
        """What input k has where the loops are."""
        operand = self.spec.inputs[k]
        if not operand.borders:
            return memref.LoadOp(self.views[k], self.at).result
        inside = [self._is_inside(border) for border in operand.borders]
        condition = inside[0]
        for other in inside[1:]:
            condition = arith.andi(condition, other)
        found = scf.IfOp(condition, [kind], hasElse=True)
        with ir.InsertionPoint(found.then_block):
            scf.YieldOp([memref.LoadOp(self.views[k], self.at).result])
        with ir.InsertionPoint(found.else_block):
            scf.YieldOp([arith.constant(kind, operand.around)])
        return found.results[0]

    def _is_inside(self, border: Border) -> Any:
        index = ir.IndexType.get()
        place = arith.constant(index, border.start)
        for at, step in zip(self.at, border.steps, strict=True):
            place = arith.addi(place, arith.muli(at, arith.constant(index, step))) if step else place
        # Without a sign, what is before the first place is beyond the last.
        return arith.cmpi(arith.CmpIPredicate.ult, place, arith.constant(index, border.extent))


def _elementwise(op: str, dtype: str, args: list[Any]) -> Any:
    return (_FLOAT if is_float(dtype) else _INT)[op](*args)


def _start(name: str, dtype: str) -> float | int:
    """What a reduction of nothing is."""
    if name in ("sum", "or", "xor"):
        return 0.0 if is_float(dtype) else 0
    if name == "prod":
        return 1.0 if is_float(dtype) else 1
    if is_float(dtype):
        return float("-inf") if name.startswith("max") else float("inf")
    if dtype == "i1":
        return int(name in ("and", "umin", "max"))
    bits = int(dtype[1:])
    return {"max": -(1 << (bits - 1)), "min": (1 << (bits - 1)) - 1, "umax": 0}.get(name, -1)


def _compare(predicate: str, x: Any, y: Any) -> Any:
    if isinstance(x.type, ir.FloatType):
        return arith.cmpf(getattr(arith.CmpFPredicate, predicate.upper()), x, y)
    return arith.cmpi(getattr(arith.CmpIPredicate, predicate), x, y)


def _better(extremum: str, dtype: str, v: Any, best: Any, passes_over: bool) -> Any:
    """Whether v is larger (smaller) than `best`; NaN is, than all but NaN, unless it is passed over."""
    order = {"max": "gt", "min": "lt"}[extremum]
    if not is_float(dtype):
        return _compare(f"s{order}", v, best)
    better = _compare(f"o{order}", v, best)
    if passes_over:
        return better
    return arith.ori(better, arith.andi(_compare("uno", v, v), _compare("ord", best, best)))


def _same(dtype: str, v: Any, best: Any) -> Any:
    if not is_float(dtype):
        return _compare("eq", v, best)
    return arith.ori(_compare("oeq", v, best), arith.andi(_compare("uno", v, v), _compare("uno", best, best)))


def _cast(x: Any, kind: Any, unsigned: bool) -> Any:
    """See `ops.SPECIAL`."""
    floats = isinstance(x.type, ir.FloatType), isinstance(kind, ir.FloatType)
    if floats == (True, True):
        if {str(x.type), str(kind)} == {"f16", "bf16"}:
            return arith.truncf(kind, arith.extf(ir.F32Type.get(), x))
        return arith.extf(kind, x) if kind.width > x.type.width else arith.truncf(kind, x)
    if floats == (True, False):
        return arith.fptoui(kind, x) if unsigned else arith.fptosi(kind, x)
    unsigned = unsigned or x.type.width == 1
    if floats == (False, True):
        return arith.uitofp(kind, x) if unsigned else arith.sitofp(kind, x)
    if kind.width > x.type.width:
        return arith.extui(kind, x) if unsigned else arith.extsi(kind, x)
    if kind.width == 1:
        return _compare("ne", x, arith.constant(x.type, 0))
    return arith.trunci(kind, x)


def _view(value: Any, spec: NestSpec, k: int) -> Any:
    """An operand with a dim for each of the nest's, then its axes, if it is a table."""
    base, offset = memref.ExtractStridedMetadataOp(value).results[:2]
    if first := spec.operands[k].first:
        offset = arith.addi(offset, arith.constant(ir.IndexType.get(), first))
    axes = spec.operands[k].axes
    sizes, strides = [a.extent for a in axes], [a.stride for a in axes]
    return strided_view(base, offset, [*spec.dims, *sizes], [*spec.operands[k].strides, *strides])
