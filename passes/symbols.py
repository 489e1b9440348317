"""Top-level functions and what they reach: shared by the passes that work on one entry function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlir.ir as ir


def symbol_name(op: Any) -> str | None:
    """The name an op defines in its symbol table, or None."""
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None


def functions(module: Any) -> list[Any]:
    """The `func.func` ops at the top level of a module op, in order."""
    return [op for op in module.operation.regions[0].blocks[0] if op.operation.name == "func.func"]


def function_named(module: Any, name: str) -> Any | None:
    """The top-level `func.func` of that name, or None."""
    return next((f for f in functions(module) if symbol_name(f) == name), None)


def has_body(function: Any) -> bool:
    """Whether a `func.func` is defined here and not merely declared."""
    return len(function.operation.regions[0].blocks) > 0


def is_public(op: Any) -> bool:
    """Whether a symbol is visible from outside (MLIR's default)."""
    attributes = op.operation.attributes
    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value == "public"


def all_ops(op: Any) -> list[Any]:
    """`op` and every op nested in it, outermost first. A list, so that the caller may erase and insert."""
    found: list[Any] = []

    def visit(each: Any) -> Any:
        found.append(each)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def symbols_in(attribute: Any) -> Iterator[str]:
    """The top-level symbol names that an attribute refers to, however deep in arrays and dictionaries."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        yield attribute.value
    elif isinstance(attribute, ir.SymbolRefAttr):
        yield attribute.value[0]
    elif isinstance(attribute, ir.ArrayAttr):
        for element in attribute:
            yield from symbols_in(element)
    elif isinstance(attribute, ir.DictAttr):
        for named in attribute:
            yield from symbols_in(named.attr)


def symbols_used_by(op: Any) -> set[str]:
    """The symbol names that an op, or anything nested in it, refers to."""
    return {name for each in all_ops(op) for key in each.attributes for name in symbols_in(each.attributes[key])}


def entry_function(module: Any, name: str = "") -> Any:
    """The function to run: the one called `name`, else the only public function with a body.

    Raises ValueError with a message for people: no such function, several to choose from, or one without a body.
    """
    if name:
        found = function_named(module, name)
        if found is None:
            known = ", ".join(f"@{symbol_name(f)}" for f in functions(module)) or "none"
            raise ValueError(f"no function @{name} to enter (functions of the module: {known})")
        if not has_body(found):
            raise ValueError(f"function @{name} is only declared: an entry needs a body")
        return found
    defined = [f for f in functions(module) if has_body(f)]
    public = [f for f in defined if is_public(f)]
    candidates = public or defined
    if not candidates:
        raise ValueError("the module has no function with a body: there is nothing to enter")
    if len(candidates) > 1:
        known = ", ".join(f"@{symbol_name(f)}" for f in candidates)
        raise ValueError(f"several functions could be the entry ({known}): choose one with --entry or entry=")
    return candidates[0]
