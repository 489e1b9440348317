"""Large constants stay out of the LLVM IR: as text they would cost a minute and a gigabyte where the data is 16 MB.

They become external symbols, and the program keeps the arrays that these are linked to. It also makes programs that
differ in their weights only share one entry of the object cache.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .elements import Element, element_of

#: Smaller constants are worth more to LLVM's optimiser than they cost.
THRESHOLD_BYTES = 4096
_PREFIX = "morello.constant."
_ALIGNMENT = 64


def extract(module: Any) -> dict[str, np.ndarray]:
    """Take the large constant globals out of a bufferized module; returns their contents by symbol.

    A global whose contents the bindings do not give away stays inside.
    """
    import mlir.ir as ir

    found: dict[str, np.ndarray] = {}
    for op in list(module.operation.regions[0].blocks[0]):
        operation = op.operation
        if operation.name != "memref.global" or not {"constant", "initial_value"} <= set(operation.attributes):
            continue
        type_ = ir.MemRefType(ir.TypeAttr(operation.attributes["type"]).value)
        data = _contents(operation.attributes["initial_value"], type_)
        if data is None:
            continue
        symbol = f"{_PREFIX}{len(found)}"
        found[symbol] = data
        old = ir.StringAttr(operation.attributes["sym_name"]).value
        ir.SymbolTable.replace_all_symbol_uses(old, symbol, module.operation)
        ir.SymbolTable.set_symbol_name(operation, symbol)
        # A declaration is public, has no value, and promises nothing.
        for name in ("initial_value", "constant", "sym_visibility"):
            if name in operation.attributes:
                del operation.attributes[name]
    return found


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
    room = np.empty(len(data) + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    aligned = room[start : start + len(data)]
    aligned[:] = np.frombuffer(data, np.uint8)
    return aligned


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
