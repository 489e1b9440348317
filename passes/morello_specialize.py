"""The pass `morello-specialize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir
from mlir.dialects import memref, tensor
from mlir.passmanager import PassManager

from .base import Pass, option
from .symbols import all_ops, entry_function, has_body, symbol_name, symbols_used_by
from .types import DYNAMIC, function_type, is_shaped, set_function_type, shape_of, with_shape

# Private callees of a dynamic entry would stay dynamic: inline them. Dims of results become dims of operands, so that
# sizes known at the entry reach everything that depends on them.
PROPAGATE = "builtin.module({inline}canonicalize,resolve-ranked-shaped-type-result-dims,canonicalize,cse)"


@dataclass(frozen=True)
class Specialize(Pass):
    """Fix the dynamic sizes of an entry function's arguments and carry them through its body.

    A size that the sizes of the arguments do not determine stays dynamic, which is correct and merely slower. Sizes
    that contradict each other are an error. An entry that the module calls itself is left alone.
    """

    name: ClassVar[str] = "morello-specialize"
    summary: ClassVar[str] = "Fix the dynamic sizes of the entry function's arguments"
    entry: str = option("", help="the function to specialise (default: the only public one with a body)")
    shapes: tuple[str, ...] = option(
        (), help="a shape per argument: 3x4; 'scalar' for rank 0 and whatever has no shape"
    )

    def run(self, op: Any) -> None:
        try:
            entry = entry_function(op, self.entry)
        except ValueError as error:
            self.fail(op, str(error))
        with op.operation.location:
            wanted = self._argument_types(entry)
        inputs = list(function_type(entry).inputs)
        if wanted == inputs or symbol_name(entry) in _called_symbols(op):
            return
        _retype_arguments(entry, wanted)
        inline = "inline," if _has_private_callees(op) else ""
        PassManager.parse(PROPAGATE.format(inline=inline)).run(op.operation)
        _retype_results(entry_function(op, self.entry))

    def _argument_types(self, entry: Any) -> list[Any]:
        """The types to give to the arguments. Fails where a shape does not fit the type."""
        inputs = list(function_type(entry).inputs)
        if len(self.shapes) != len(inputs):
            self.fail(entry, f"takes {len(inputs)} arguments, but {len(self.shapes)} shapes are given")
        wanted = []
        for position, (type_, text) in enumerate(zip(inputs, self.shapes, strict=True)):
            if text == "scalar" or not is_shaped(type_):
                wanted.append(type_)
                continue
            try:
                shape = tuple(int(size) for size in text.split("x"))
            except ValueError:
                self.fail(entry, f"argument {position}: '{text}' is not a shape")
            declared = shape_of(type_)
            if len(shape) != len(declared) or any(d not in (None, s) for s, d in zip(shape, declared, strict=True)):
                self.fail(entry, f"argument {position} of type {type_} cannot have the shape {text}")
            wanted.append(with_shape(type_, shape))
        return wanted


def _called_symbols(module: Any) -> set[str]:
    return {name for op in module.operation.regions[0].blocks[0] for name in symbols_used_by(op)}


def _has_private_callees(module: Any) -> bool:
    defined = [f for f in module.operation.regions[0].blocks[0] if f.operation.name == "func.func" and has_body(f)]
    return len(defined) > 1


def _retype_arguments(entry: Any, wanted: list[Any]) -> None:
    """Give the arguments new types; the body still sees the old ones through casts that canonicalize then folds."""
    block = entry.operation.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block):
        for argument, type_ in zip(block.arguments, wanted, strict=True):
            before = argument.type
            if before == type_:
                continue
            argument.set_type(type_)
            cast_op = tensor.CastOp if isinstance(type_, ir.RankedTensorType) else memref.CastOp
            with argument.owner.owner.location:
                cast = cast_op(before, argument)
            argument.replace_all_uses_except(cast.result, cast.operation)
    set_function_type(entry, wanted, list(function_type(entry).results))


def _retype_results(entry: Any) -> None:
    """Where the only return gives a cast of something more static, return that instead."""
    returns = [op for op in all_ops(entry) if op.name == "func.return"]
    if len(returns) != 1:
        return
    results = []
    for index, value in enumerate(returns[0].operands):
        source = value
        while not isinstance(source.owner, ir.Block) and source.owner.name in ("tensor.cast", "memref.cast"):
            if not _more_static(source.owner.operands[0].type, source.type):
                break
            source = source.owner.operands[0]
        returns[0].operands[index] = source
        results.append(source.type)
    set_function_type(entry, list(function_type(entry).inputs), results)


def _more_static(source: Any, target: Any) -> bool:
    if not (is_shaped(source) and is_shaped(target)):
        return False
    return list(source.shape).count(DYNAMIC) < list(target.shape).count(DYNAMIC)
