"""The verifier of `morello.spec`: its attributes make a Spec, and its operands and results are what that Spec says.

A tensor in GL, L2 or L1 is one memref of static sizes and strides, with the element type of its dtype. Its dims are
those of the tensor in the function's order, and its strides fall in the order of the layout: a transposed operand is a
memref like any other, with strides such as [1, 8]. Where the layout packs, the dims are the parts of the layout
instead, from slowest to fastest (`[b, n/16, k, n%16]`). Dims of size one may be left out, or be more than the tensor
has.

A tensor with a window has a dim for every digit (see `Window.shape`), whose strides may fall in any order.

A tensor in VRF is a bundle of 1-D vectors, row by row: `bundle_size` of them.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from morello_mlir.errors import SpecError

from .chain_op import ChainOp, chain_ops, chain_problems
from .goal_op import GoalOp, static_strides
from .nest_op import NEST_OPTIONAL, NEST_REQUIRED, NestOp, goal_ops, nest_value_problems
from .spec_op import SpecOp

if TYPE_CHECKING:
    from morello_mlir.spec import Extra, Spec, TensorSpec

REQUIRED = ("function", "dims", "operands")
OPTIONAL = (
    "serial",
    "threads",
    "forked",
    "far",
    "limits",
    "constants",
    "then",
    "then_inputs",
    "schedule",
    "cost",
    "source",
)
SOURCES = ("search", "memo", "shipped", "measured", "manual")

# Signless integers stand for both signs, as everywhere in upstream's dialects.
_ELEMENT_TYPES = {"u8": ("i8", "ui8")}


def verify_specs(root: Any) -> bool:
    """Verify every `morello.spec`, nest and chain at or below an op, reporting errors at the ops; False where there
    was one."""
    # A list: every op is to be reported, not only the first bad one.
    verdicts = [_reported(op) for op in (*goal_ops(root), *chain_ops(root))]
    return all(verdicts)


def verify_spec_op(op: Any) -> bool:
    """Verify one op, reporting each problem as an error at it; False where there was one."""
    name = op.operation.name
    kind = NestOp if NestOp.is_named(name) else ChainOp if ChainOp.is_named(name) else SpecOp
    return _reported(kind(op))


def _reported(view: GoalOp) -> bool:
    from morello_mlir import diagnostics

    if isinstance(view, ChainOp):
        found = [*chain_problems(view), *_schedule_problems(view)]
    else:
        found = _nest_problems(view) if isinstance(view, NestOp) else problems(view.operation)
    for message in found:
        diagnostics.emit(diagnostics.ERROR, f"'{view.operation.name}' op {message}", view.operation.location)
    return not found


def _nest_problems(view: NestOp) -> list[str]:
    """What is wrong with a nest."""
    known = (*NEST_REQUIRED, *NEST_OPTIONAL)
    found = [f"unknown attribute '{a}'" for a in _attribute_names(view) if a not in known and "." not in a]
    try:
        spec = view.spec
    except SpecError as error:
        return [*found, str(error)]
    return [*found, *_schedule_problems(view), *nest_value_problems(view, spec)]


def problems(op: Any) -> list[str]:
    """What is wrong with a `morello.spec`: messages that name the attribute, operand or result. Empty: it is valid."""
    view = SpecOp(op)
    found = [f"unknown attribute '{a}'" for a in _attribute_names(view) if not _allowed(a)]
    try:
        spec = view.spec
    except SpecError as error:
        return [*found, str(error)]
    return [*found, *_schedule_problems(view), *_constant_problems(view, spec), *_value_problems(view, spec)]


def _attribute_names(view: GoalOp) -> list[str]:
    return list(view.operation.attributes)


def _allowed(attribute: str) -> bool:
    # A dotted name is a discardable attribute of somebody's dialect, which passes through.
    return attribute in REQUIRED or attribute in OPTIONAL or "." in attribute


def _schedule_problems(view: GoalOp) -> list[str]:
    found = []
    try:
        _ = view.schedule_text
        if view.cost is not None and view.cost < 0:
            found.append(f"attribute 'cost': {view.cost} is negative")
        if view.source is not None and view.source not in SOURCES:
            found.append(f"attribute 'source': '{view.source}' is none of {', '.join(SOURCES)}")
    except SpecError as error:
        found.append(str(error))
    return found


def _constant_problems(view: SpecOp, spec: Spec) -> list[str]:
    try:
        named = view.constants
    except SpecError as error:
        return [str(error)]
    const = {name for (name, _), t in zip(spec.info.operands, spec.operands, strict=True) if t.const}
    return [f"attribute 'constants': '{name}' is no constant operand" for name in named if name not in const]


def bundle_size(tensor: TensorSpec, shape: tuple[int, ...], lanes: int) -> int:
    """How many vectors of `lanes` hold a register-resident tensor of logical `shape`: whole vectors for every row.

    Rows run along the last logical dim, in whatever order the tensor lies in memory: so do the kernels' vectors.
    """
    physical = tensor.layout.physical_shape(shape) if tensor.layout.is_packed else shape
    return math.prod(physical[:-1]) * math.ceil(physical[-1] / lanes)


def _value_problems(view: SpecOp, spec: Spec) -> list[str]:
    """Check that operands and results agree with the tensor specs. Later operands are not checked after a bad one."""
    values = [v.type for v in view.operands]
    out = len(spec.operands) - 1
    at = 0
    for index, tensor in enumerate(spec.operands):
        name = spec.info.operands[index][0]
        if tensor.memory == "VRF":
            # An output that is not accumulated has no value before.
            if index == out and not spec.info.accumulates and at == len(values):
                continue
            complaint, taken = _bundle_problem(tensor, spec.operand_shape(index), values[at:])
            what = f"operands {at}.. ({name})"
        else:
            complaint = memref_problem(tensor, spec.operand_shape(index), values[at]) if at < len(values) else "missing"
            taken, what = 1, f"operand {at} ({name})"
        if complaint:
            return [f"{what}: {complaint}"]
        at += taken
    if spec.then is not None:
        for k, extra in enumerate(spec.then.extras, 1):
            if at == len(values):
                return [f"operand {at} (x{k} of then): missing"]
            if complaint := _extra_problem(extra, spec, values[at]):
                return [f"operand {at} (x{k} of then): {complaint}"]
            at += 1
    if at < len(values):
        return [f"operand {at}: {spec.function} takes no more operands"]
    return _result_problems(spec, [r.type for r in view.results], values)


def _result_problems(spec: Spec, results: list[Any], operands: list[Any]) -> list[str]:
    tensor, name = spec.operands[-1], spec.info.operands[-1][0]
    if tensor.memory != "VRF":
        return [f"results: none expected, since {name} is in {tensor.memory}"] if results else []
    complaint, taken = _bundle_problem(tensor, spec.operand_shape(len(spec.operands) - 1), results)
    if complaint:
        return [f"results ({name}): {complaint}"]
    if taken < len(results):
        return [f"results ({name}): expected {taken} vectors, not {len(results)}"]
    if spec.info.accumulates and operands[-1] != results[0]:
        return [f"results ({name}): type {results[0]} differs from {operands[-1]}, the operand's"]
    return []


def _bundle_problem(tensor: TensorSpec, shape: tuple[int, ...], types: list[Any]) -> tuple[str, int]:
    """(what is wrong or "", number of values taken) for the vectors of a register-resident tensor."""
    from mlir import ir

    if not types:
        return "missing", 0
    first = types[0]
    if not isinstance(first, ir.VectorType) or ir.VectorType(first).rank != 1:
        return f"expected 1-D vectors, since it is in VRF, not {first}", 0
    vector = ir.VectorType(first)
    if str(vector.element_type) not in _ELEMENT_TYPES.get(tensor.dtype, (tensor.dtype,)):
        return f"the element type {vector.element_type} is not that of {tensor.dtype}", 0
    count = bundle_size(tensor, shape, vector.shape[0])
    have = next((i for i, t in enumerate(types) if t != first), len(types))
    if have < count:
        return f"expected {count} vectors {first}, not {have}", 0
    return "", count


def memref_problem(tensor: TensorSpec, shape: tuple[int, ...], kind: Any) -> str:
    """What is wrong with a memref as the home of a tensor, or ""."""
    from mlir import ir

    if not isinstance(kind, ir.MemRefType):
        return f"expected a memref, since it is in {tensor.memory}, not {kind}"
    memref = ir.MemRefType(kind)
    if str(memref.element_type) not in _ELEMENT_TYPES.get(tensor.dtype, (tensor.dtype,)):
        return f"the element type {memref.element_type} is not that of {tensor.dtype}"
    strides = static_strides(memref)
    if isinstance(strides, str):
        return strides
    # Every dim with its stride; those of size one say nothing.
    dims = [(size, stride) for size, stride in zip(memref.shape, strides, strict=True) if size != 1]
    expected = tensor.layout.physical_shape(shape) if tensor.layout.is_packed else shape
    if tensor.window is not None:
        expected = tensor.window.shape(shape)
    if [size for size, _ in dims] != [size for size in expected if size != 1]:
        return f"the sizes of {kind} are not {list(expected)}"
    if tensor.window is not None:
        return ""  # its strides fall in no order
    if not tensor.layout.is_packed:
        by_dim = dict(zip([d for d, size in enumerate(shape) if size != 1], dims, strict=True))
        dims = [by_dim[dim] for dim, _ in tensor.layout.parts if dim in by_dim]
    # A fast dim of one element (a tile of a larger tensor) has no stride to speak of.
    if not _falls(dims, tensor.unit and tensor.layout.physical_shape(shape)[-1] != 1):
        return f"the strides of {kind} do not follow the layout {tensor.layout}"
    return ""


def _extra_problem(extra: Extra, spec: Spec, kind: Any) -> str:
    """What is wrong with a memref as an operand of `then`, or "". It has the sizes of the output, and stands still
    along the dims that the operand lacks."""
    from mlir import ir

    if not isinstance(kind, ir.MemRefType):
        return f"expected a memref, not {kind}"
    if str(kind.element_type) != extra.dtype:
        return f"the element type {kind.element_type} is not that of {extra.dtype}"
    sizes = spec.operand_shape(len(spec.operands) - 1)
    if tuple(kind.shape) != sizes:
        return f"the sizes of {kind} are not {list(sizes)}"
    strides = static_strides(kind)
    if isinstance(strides, str):
        return strides
    for dim, size, stride in zip(spec.operand_names(len(spec.operands) - 1), sizes, strides, strict=True):
        if size != 1 and (stride != 0) != (dim in extra.dims):
            return f"the strides of {kind} do not fit the dims [{', '.join(extra.dims)}]"
    return ""


def _falls(dims: list[tuple[int, int]], unit: bool) -> bool:
    """Whether the strides of (size, stride) pairs never grow towards the fast end, which has stride one if `unit`.

    A zero (a broadcast) fits anywhere, and where there are no elements there is nothing to hold.
    """
    strides = [stride for _, stride in dims]
    if not strides or math.prod(size for size, _ in dims) == 0:
        return True
    if unit and strides[-1] != 1:
        return False
    real = [s for s in strides if s]
    return all(a >= b for a, b in pairwise(real))
