"""Putting text in the place of ops: parse once, move the bodies in, append the functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

#: Names of the functions that stand for the ops while the text is parsed; they never reach the user's module.
ROOT = "morello_root_"


def splice(module: Any, ops: Sequence[Any], text: str) -> None:
    """Replaces every op of `ops` by the body of the function `ROOT + its number` in `text`, whose arguments are the
    op's operands and whose results are the op's results. The other functions and globals of `text` are appended to
    `module`, but for those that are only declared: the module has them."""
    parsed = ir.Module.parse(text, module.context)
    roots = {f"{ROOT}{i}": op for i, op in enumerate(ops)}
    places = [op.location for op in ops]
    for function in list(parsed.body.operations):
        op = roots.get(ir.StringAttr(function.attributes["sym_name"]).value)
        if _is_declaration(function.operation):
            continue
        if op is None:
            _relocate(function.operation, places[0])
            function.operation.detach_from_parent()
            module.regions[0].blocks[0].append(function)
        else:
            _relocate(function.operation, op.location)
            _replace(op, function)


def _is_declaration(op: Any) -> bool:
    if op.name == "memref.global":
        return "initial_value" not in op.attributes
    return not op.regions[0].blocks


def _relocate(root: Any, location: Any) -> None:
    """Gives everything the location of the op that it stems from: positions in our text would mislead."""

    def visit(op: Any) -> Any:
        op.location = location
        return ir.WalkResult.ADVANCE

    root.walk(visit)


def _replace(op: Any, function: Any) -> None:
    """Moves the body of `function` to where `op` is."""
    end = place(function, op.operands, op)
    for result, value in zip(op.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    end.erase()
    op.erase()


def place(function: Any, values: Sequence[Any], op: Any) -> Any:
    """Moves the body of `function`, applied to `values`, before `op`; returns what is left: its end."""
    block = function.operation.regions[0].blocks[0]
    for argument, value in zip(block.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    *body, end = list(block.operations)
    for inner in body:
        inner.operation.move_before(op)
    return end.operation
