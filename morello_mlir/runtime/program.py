"""A compiled entry function for one set of shapes, ready to be called."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from morello_mlir.errors import InputError, MorelloError

from . import jit
from .arguments import Memory, array_slots, as_array, check_array, memory_for, scalar_slots
from .build import Build
from .cache import ObjectCache
from .objects import data_address
from .results import Collector, scalar
from .signature import Parameter, Signature
from .wrapper import OBJECTS_ENTRY, PACKET_ENTRY, result_slots


class AssertionFailed(MorelloError):
    """A run-time assertion of the program (`cf.assert`) does not hold. `str(e)` is its message."""


class Program:
    """Machine code and how to call it.

    build: what it was made from. options: how LLVM compiled it. shapes: what it is specialised on, or None.
    Calling is safe from several threads; the interpreter lock is released while the code runs.
    """

    def __init__(
        self,
        build: Build,
        options: jit.Options,
        cache: ObjectCache | None,
        shapes: tuple[tuple[int, ...] | None, ...] | None = None,
    ):
        started = time.perf_counter()
        exports = (PACKET_ENTRY, OBJECTS_ENTRY) if build.objects else (PACKET_ENTRY,)
        self.build = build
        self.shapes = shapes
        self.options = options
        self.signature: Signature = build.signature
        imports = {name: data_address(data) for name, data in build.constants.items()}
        self._library = jit.load(build.ir, exports, options, cache, imports)
        self.llvm_seconds = time.perf_counter() - started
        addresses = self._library.addresses
        self._enter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses[PACKET_ENTRY])
        self._inputs = self.signature.inputs
        self._outputs = tuple(p for p in self.signature.parameters if p.result is not None)
        self._packet = ctypes.c_int64 * max(build.layout.size, 1)
        #: What `__call__` does, without the detour through the class: callers that count nanoseconds keep this.
        self.call = self._make_fast(addresses[OBJECTS_ENTRY]) if build.objects else self._call

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the object cache."""
        return self._library.from_cache

    def __call__(self, *args: Any) -> Any:
        """Run. Returns None, an array or scalar, or a tuple of them.

        Raises InputError for arguments that do not fit, AssertionFailed.
        """
        return self.call(*args)

    def _make_fast(self, address: int) -> Callable[..., Any]:
        """A function for contiguous numpy arrays of the right dtype and shape; it hands anything else to `_call`.

        Written out as source for the arguments at hand: a loop over them would cost more than the call itself.
        """
        inputs, outputs = self._inputs, self._outputs
        names = [f"a{i}" for i in range(len(inputs))]
        made = [f"r{i}" for i in range(len(outputs))]
        # c_ssize_t and not c_void_p: the addresses of objects are plain integers here.
        enter = ctypes.CFUNCTYPE(None, *[ctypes.c_ssize_t] * (len(names) + len(made)))(address)
        scope: dict[str, Any] = {"ndarray": np.ndarray, "empty": np.empty, "enter": enter, "general": self._call}
        conditions = [f"len(args) == {len(names)}"]
        for name, parameter in zip(names, inputs, strict=True):
            scope |= {f"{name}_shape": parameter.shape, f"{name}_dtype": parameter.element.dtype}
            conditions += [
                f"type({name}) is ndarray",
                f"{name}.dtype is {name}_dtype",
                f"{name}.shape == {name}_shape",
                # C-contiguous, aligned and writable; the general path asks whether being read-only matters.
                f"{name}.flags.carray",
            ]
        for name, parameter in zip(made, outputs, strict=True):
            scope |= {f"{name}_shape": parameter.shape, f"{name}_dtype": parameter.element.dtype}
        source = ["def fast(*args):", f"    if {conditions[0]}:"]
        if names:
            source.append(f"        {', '.join(names)}, = args")
        source.append(f"        if {' and '.join(conditions[1:]) or 'True'}:")
        source += [f"            {name} = empty({name}_shape, {name}_dtype)" for name in made]
        source.append(f"            enter({', '.join(f'id({name})' for name in names + made)})")
        source.append(
            f"            return {made[0] if len(made) == 1 else ('(' + ', '.join(made) + ')' if made else 'None')}"
        )
        source.append("    return general(*args)")
        exec("\n".join(source), scope)
        fast: Callable[..., Any] = scope["fast"]
        return fast

    # ---- the general path ----------------------------------------------------------------------------------------

    def _call(self, *args: Any) -> Any:
        if len(args) != len(self._inputs):
            raise InputError(f"@{self.signature.name}: expected {len(self._inputs)} arguments, got {len(args)}")
        slots: list[int] = []
        memories: list[Memory] = []
        for position, (value, parameter) in enumerate(zip(args, self._inputs, strict=True)):
            self._add(value, parameter, f"argument {position}", slots, memories)
        outputs: list[np.ndarray] = []
        for parameter in self._outputs:
            shape = tuple(size or 0 for size in parameter.shape or ())
            outputs.append(np.empty(shape, parameter.element.dtype))
            slots += array_slots(Memory(outputs[-1], None), parameter)
        packet = self._packet(*slots)
        self._enter(ctypes.addressof(packet))
        # Also after a failed assertion: what was written until then is in the caller's memory, copied or not.
        for memory in memories:
            memory.write_back()
        self._raise_on_assertion(packet)
        return self._results(packet, memories, outputs)

    def _add(self, value: Any, parameter: Parameter, where: str, slots: list[int], memories: list[Memory]) -> None:
        where = f"@{self.signature.name}: {where}"
        if parameter.shape is None:
            slots += scalar_slots(value, parameter.element, where)
            return
        array = as_array(value, where)
        check_array(array, parameter, where)
        memory = memory_for(array, parameter, where)
        memories.append(memory)
        slots += array_slots(memory, parameter)

    def _raise_on_assertion(self, packet: Any) -> None:
        at = self.build.layout.status
        if at is not None and packet[at]:
            message = self.build.assertions[packet[at] - 1]
            raise AssertionFailed(f"@{self.signature.name}: assertion failed: {message}")

    def _results(self, packet: Any, memories: list[Memory], outputs: list[np.ndarray]) -> Any:
        found: dict[int, Any] = {
            p.result: array for p, array in zip(self._outputs, outputs, strict=True) if p.result is not None
        }
        collector = Collector(memories)
        for result, at in zip(self.signature.results, self.build.layout.results, strict=True):
            slots = packet[at : at + result_slots(result)]
            found[result.number] = (
                scalar(slots, result.element) if result.shape is None else collector.array(slots, result)
            )
        ordered = tuple(found[number] for number in sorted(found))
        if not ordered:
            return None
        return ordered[0] if len(ordered) == 1 else ordered
