"""A compiled entry function for one set of shapes, ready to be called."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache as cache_result
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from morello_mlir.cached import cached_property
from morello_mlir.errors import InputError, MorelloError

from . import allocator, fastcall, jit, pool
from . import bind as binding
from .arguments import Memory, array_slots, as_array, check_array, memory_for, scalar_slots, shares
from .build import Build
from .cache import ObjectCache
from .objects import data_address
from .results import Collector, scalar
from .signature import Parameter, Signature, may_clash
from .wrapper import PACKET_ENTRY, result_slots


class AssertionFailed(MorelloError):
    """A run-time assertion of the program (`cf.assert`) does not hold. `str(e)` is its message."""


class Program:
    """Machine code and how to call it.

    build: what it was made from. options: how LLVM compiled it. shapes: what it is specialised on, or None.
    careful: gives the program that is called in this one's place where the caller passes memory that is written to
    twice; None where that makes no difference.
    Calling is safe from several threads; the interpreter lock is released while the code runs.
    """

    def __init__(
        self,
        build: Build,
        options: jit.Options,
        cache: ObjectCache | None,
        shapes: tuple[tuple[int, ...] | None, ...] | None = None,
        careful: Callable[[], Program] | None = None,
    ):
        started = time.perf_counter()
        exports = (PACKET_ENTRY, fastcall.PYTHON_ENTRY) if build.direct else (PACKET_ENTRY,)
        self.build = build
        self.shapes = shapes
        self.options = options
        self._careful = cache_result(careful) if careful else None
        self._cache = cache
        self.signature: Signature = build.signature
        imports = {name: data_address(data) for name, data in (build.constants | build.panels).items()}
        if pool.ENTRY in build.ir:
            imports |= pool.symbols()
        if "@malloc(" in build.ir:
            imports |= allocator.symbols()
        self._objects = fastcall.named_objects(self.signature) if build.direct else {}
        if build.direct:
            imports |= self._python_symbols()
        self._refused: InputError | None = None
        self._library = jit.load(build.ir, exports, options, cache, imports)
        self._into_libraries: list[jit.Library] = []
        self.llvm_seconds = time.perf_counter() - started
        addresses = self._library.addresses
        self._enter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses[PACKET_ENTRY])
        self._inputs = self.signature.inputs
        self._outputs = tuple(p for p in self.signature.parameters if p.result is not None)
        self._packet = ctypes.c_int64 * max(build.layout.size, 1)
        #: What `__call__` does, without the detour through the class: callers that count nanoseconds keep this.
        self.call: Callable[..., Any] = self._call
        if build.direct:
            self.call = fastcall.function(self.signature.name, addresses[fastcall.PYTHON_ENTRY], self._call)

    def refuse(self, why: InputError) -> None:
        """Have every call raise `why`: the code is for another machine."""

        def refused(*args: Any) -> Any:
            raise why

        self._refused = why
        self.call = self.into = refused

    @cached_property
    def into(self) -> Callable[..., Any]:
        """What `call` is, with one more argument at the end, `out`: an array for each result that is a tensor, or a
        sequence of arrays, in order. Compiled when it is first asked for, in some milliseconds: most callers never do.

        It raises what `call` does, and InputError for arrays that cannot take the results.
        """
        if not self.build.direct or not self._outputs or fastcall.FIELDS is None:
            return self._into
        ir = fastcall.into_wrapper(self.signature, fastcall.FIELDS, asserts=bool(self.build.assertions))
        imports = self._python_symbols() | {PACKET_ENTRY: self.entry_address}
        library = jit.load(ir, (fastcall.INTO_ENTRY,), jit.Options(vectorize=False, level=1), self._cache, imports)
        # Threads that ask at once may get one each.
        self._into_libraries.append(library)
        return fastcall.function(self.signature.name, library.addresses[fastcall.INTO_ENTRY], self._into)

    def _python_symbols(self) -> dict[str, int]:
        return fastcall.interpreter_symbols() | {name: id(each) for name, each in self._objects.items()}

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the object cache."""
        return self._library.from_cache

    @property
    def entry_address(self) -> int:
        """Where `morello.call` is, for callers that are native code themselves (see wrapper.py); valid while this
        object lives."""
        return self._library.addresses[PACKET_ENTRY]

    def __call__(self, *args: Any) -> Any:
        """Run. Returns None, an array or scalar, or a tuple of them.

        Raises InputError for arguments that do not fit, AssertionFailed.
        """
        return self.call(*args)

    def bind(self, args: Sequence[Any], out: Any = None) -> Callable[[], Any]:
        """A function without arguments that runs with these ones, used where they lie, each time it is called.

        It returns the same arrays at every call: those of `out`, or new ones made here. See `CompiledFunction.bind`.
        Raises InputError.
        """
        if self._refused is not None:
            raise self._refused
        name = self.signature.name
        self._check_count(args)
        slots: list[int] = []
        memories: list[tuple[int, Memory]] = []
        for position, (value, parameter) in enumerate(zip(args, self._inputs, strict=True)):
            where = f"@{name}: argument {position}"
            if parameter.shape is None:
                slots += scalar_slots(value, parameter.element, where)
                continue
            memory = binding.in_place(value, parameter, where)
            own = array_slots(memory, parameter)
            memories.append((own[0], memory))
            slots += own
        if self._careful and self._overlap(memories):
            return self._careful().bind(args, out)
        if self.signature.results or self.build.layout.status is not None:
            # The program itself returns something, or may fail: that is looked at after each call.
            kept = tuple(args)
            return partial(self._run, kept, out) if out is not None else partial(self._run, kept)
        outputs = self._output_arrays(out, memories)
        slots += self._output_slots(outputs)
        answer = None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)
        return binding.bound(self.entry_address, slots, answer, (self, memories, outputs))

    # ---- the general path ----------------------------------------------------------------------------------------

    def _call(self, *args: Any) -> Any:
        return self._run(args)

    def _into(self, *args: Any) -> Any:
        *inputs, out = args
        return self._run(inputs, out)

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) != len(self._inputs):
            raise InputError(f"@{self.signature.name}: expected {len(self._inputs)} arguments, got {len(args)}")

    def _run(self, args: Sequence[Any], out: Any = None) -> Any:
        self._check_count(args)
        slots: list[int] = []
        memories: list[tuple[int, Memory]] = []
        for position, (value, parameter) in enumerate(zip(args, self._inputs, strict=True)):
            self._add(value, parameter, f"argument {position}", slots, memories)
        if self._careful and self._overlap(memories):
            return self._careful()._run(args, out)
        outputs = self._output_arrays(out, memories)
        slots += self._output_slots(outputs)
        packet = self._packet(*slots)
        self._enter(ctypes.addressof(packet))
        # Also after a failed assertion: what was written until then is in the caller's memory, copied or not.
        for _, memory in memories:
            memory.write_back()
        self._raise_on_assertion(packet)
        return self._results(packet, memories, outputs)

    def _output_arrays(self, out: Any, memories: list[tuple[int, Memory]]) -> list[np.ndarray]:
        """The arrays for the results that the program writes: those of the caller, checked, or new ones."""
        if out is None:
            shapes = [tuple(size or 0 for size in p.shape or ()) for p in self._outputs]
            return [np.empty(s, p.element.dtype) for s, p in zip(shapes, self._outputs, strict=True)]
        if self.signature.results:
            raise InputError(
                f"@{self.signature.name}: out: some results are made by the program and have no place there"
            )
        inputs = [m.view for _, m in memories]
        return binding.results_in(out, self._outputs, inputs, self.signature.name)

    def _output_slots(self, outputs: list[np.ndarray]) -> list[int]:
        pairs = zip(outputs, self._outputs, strict=True)
        return [slot for array, parameter in pairs for slot in array_slots(Memory(array, None), parameter)]

    def _add(
        self, value: Any, parameter: Parameter, where: str, slots: list[int], memories: list[tuple[int, Memory]]
    ) -> None:
        where = f"@{self.signature.name}: {where}"
        if parameter.shape is None:
            slots += scalar_slots(value, parameter.element, where)
            return
        array = as_array(value, where)
        check_array(array, parameter, where)
        memory = memory_for(array, parameter, where)
        own = array_slots(memory, parameter)
        memories.append((own[0], memory))
        slots += own

    def _overlap(self, memories: list[tuple[int, Memory]]) -> bool:
        """Whether a memref that the program writes to shares an element with another argument."""
        arrays = zip((p for p in self._inputs if p.shape is not None), (m.view for _, m in memories), strict=True)
        return any(may_clash(p, q) and shares(a, b) for (p, a), (q, b) in combinations(arrays, 2))

    def _raise_on_assertion(self, packet: Any) -> None:
        at = self.build.layout.status
        if at is not None and packet[at]:
            message = self.build.assertions[packet[at] - 1]
            raise AssertionFailed(f"@{self.signature.name}: assertion failed: {message}")

    def _results(self, packet: Any, memories: list[tuple[int, Memory]], outputs: list[np.ndarray]) -> Any:
        found: dict[int, Any] = {
            p.result: array for p, array in zip(self._outputs, outputs, strict=True) if p.result is not None
        }
        collector = Collector(dict(memories))
        for result, at in zip(self.signature.results, self.build.layout.results, strict=True):
            slots = packet[at : at + result_slots(result)]
            found[result.number] = (
                scalar(slots, result.element) if result.shape is None else collector.array(slots, result)
            )
        ordered = tuple(found[number] for number in sorted(found))
        if not ordered:
            return None
        return ordered[0] if len(ordered) == 1 else ordered
