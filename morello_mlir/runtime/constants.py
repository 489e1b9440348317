"""Large constants stay out of the LLVM IR: as text they would cost a minute and a gigabyte where the data is 16 MB.

They become external symbols, and the program keeps the arrays that these are linked to. It also makes programs that
differ in their weights only share one entry of the object cache.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..aligned import lasting
from .elements import Element, element_of

#: Smaller constants are worth more to LLVM's optimiser than they cost.
THRESHOLD_BYTES = 4096
_PREFIX = "morello.constant."
_PANELS = "morello.panels."


class Constants:
    """What the programs of one module have in common: contents of constants, and panels that are packed ahead.

    given: contents of external globals that the module declares, by symbol. Programs that are specialised on other
    shapes, or enter by other functions, link to the same arrays.
    """

    def __init__(self, given: Mapping[str, np.ndarray] = MappingProxyType({})):
        self.given = dict(given)
        self._numbers: dict[Any, int] = {}
        self._contents: dict[Any, np.ndarray | None] = {}
        self._panels: dict[str, np.ndarray] = {}

    def name_contents(self, module: Any) -> None:
        """Have operands of Specs that hold one constant say so alike in all programs: bufferization numbers globals as
        it meets them."""
        import mlir.ir as ir

        from morello_mlir.dialect import spec_ops

        names = {}
        for op in _globals(module, "constant", "initial_value"):
            number = self._numbers.setdefault(op.attributes["initial_value"], len(self._numbers))
            names[f"@{_symbol(op)}"] = f"constant {number}"
        for spec_op in spec_ops(module.operation):
            if spec_op.constants:
                parted = {operand: name.rpartition("+") for operand, name in spec_op.constants.items()}
                spec_op.operation.attributes["constants"] = ir.DictAttr.get(
                    {o: ir.StringAttr.get(f"{names.get(n, n)}+{offset}") for o, (n, _, offset) in parted.items()}
                )

    def extract(self, module: Any) -> dict[str, np.ndarray]:
        """Take the large constant globals out of a bufferized module; returns their contents by symbol.

        A global whose contents the bindings do not give away stays inside.
        """
        import mlir.ir as ir

        found: dict[str, np.ndarray] = {}
        for op in _globals(module, "constant", "initial_value"):
            value = op.attributes["initial_value"]
            if value not in self._contents:
                self._contents[value] = _contents(value, ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value))
            data = self._contents[value]
            if data is not None:
                symbol = f"{_PREFIX}{len(found)}"
                found[symbol] = data
                _declare(module, op, symbol)
        return found | self.given

    def take_panels(self, module: Any) -> dict[str, np.ndarray]:
        """Take the buffers of what is packed ahead, or made once, out of a module; returns them by symbol.

        So they may be larger than what code can address by itself, and programs with other weights share machine code.
        """
        import mlir.ir as ir

        from morello_mlir.lifting.once import PREFIX as ONCE
        from morello_mlir.lowering.ahead import OWN, PREFIX, filler

        found: dict[str, np.ndarray] = {}
        for op in _globals(module, "initial_value"):
            name = _symbol(op)
            if not name.startswith((PREFIX, ONCE)):
                continue
            size = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value).shape[0]
            symbol = f"{_PANELS}{len(found)}"
            if name.startswith((OWN, ONCE)):
                found[symbol] = lasting(size)
            else:
                if name not in self._panels:
                    self._panels[name] = lasting(size)
                found[symbol] = self._panels[name]
            _declare(module, op, symbol)
            if name.startswith(PREFIX):
                _rename(module, _find(module, filler(name)), f"{symbol}.fill")
        return found


def _globals(module: Any, *attributes: str) -> list[Any]:
    """The `memref.global`s of a module that have all of some attributes."""
    ops = (op.operation for op in module.operation.regions[0].blocks[0])
    return [op for op in ops if op.name == "memref.global" and all(a in op.attributes for a in attributes)]


def _find(module: Any, symbol: str) -> Any:
    return next(
        op.operation
        for op in module.operation.regions[0].blocks[0]
        if "sym_name" in op.operation.attributes and _symbol(op.operation) == symbol
    )


def _symbol(operation: Any) -> str:
    import mlir.ir as ir

    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def _rename(module: Any, operation: Any, symbol: str) -> None:
    import mlir.ir as ir

    ir.SymbolTable.replace_all_symbol_uses(_symbol(operation), symbol, module.operation)
    ir.SymbolTable.set_symbol_name(operation, symbol)


def _declare(module: Any, operation: Any, symbol: str) -> None:
    """Make a global the declaration of an external `symbol`."""
    _rename(module, operation, symbol)
    # A declaration is public, has no value, and promises nothing.
    for name in ("initial_value", "constant", "sym_visibility"):
        if name in operation.attributes:
            del operation.attributes[name]


def _contents(attribute: Any, type_: Any) -> np.ndarray | None:
    """The elements as they lie in memory, aligned; None for what is small or cannot be read."""
    element = element_of(str(type_.element_type))
    if element is None or not type_.has_static_shape or _is_odd(element):
        return None
    count = math.prod(type_.shape)
    if count * element.size < THRESHOLD_BYTES:
        return None
    data = _bytes(attribute, element.dtype, count)
    if data is None or len(data) != count * element.size:
        return None
    room = lasting(len(data))
    room[:] = np.frombuffer(data, np.uint8)
    return room


def _is_odd(element: Element) -> bool:
    """Integers like i4, whose bytes in a constant are not those that loads and stores agree on."""
    return element.dtype.kind in "iu" and element.llvm != f"i{8 * element.size}"


def _bytes(attribute: Any, dtype: np.dtype, count: int) -> bytes | None:
    if getattr(attribute, "is_splat", False):
        return _splat_bytes(attribute, dtype, count)
    try:
        array = np.asarray(attribute)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty((), object)
    if array.size == count and array.dtype == dtype:
        return array.tobytes()
    # bf16 and resources: the bindings have them as text only.
    text = str(attribute)
    dense = re.match(r'dense<"0x([0-9A-Fa-f]*)">', text)
    if dense:
        return bytes.fromhex(dense[1])
    return _resource_bytes(attribute) if text.startswith("dense_resource<") else None


def _splat_bytes(attribute: Any, dtype: np.dtype, count: int) -> bytes | None:
    # The bindings' buffer for a splat of i1 has garbage in it: ask for the value.
    value = getattr(attribute.get_splat_value(), "value", None)
    return None if value is None else np.full(count, value).astype(dtype).tobytes()


def _resource_bytes(attribute: Any) -> bytes | None:
    """The blob behind a `dense_resource`: printed with a module that holds it, and nothing else."""
    import mlir.ir as ir

    holder = ir.Module.create(ir.Location.unknown(attribute.context))
    holder.operation.attributes["morello.held"] = attribute
    blob = re.search(r':\s*"0x([0-9A-Fa-f]*)"', str(holder))
    # The first four bytes are the alignment.
    return bytes.fromhex(blob[1])[4:] if blob else None
