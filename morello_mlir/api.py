"""`morello_mlir.compile`: from a module to functions that take arrays."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from .errors import InputError, MorelloError
from .locks import IMPORTING, compiling, lock
from .runtime.settings import Settings

if TYPE_CHECKING:
    from .runtime.build import Build
    from .runtime.profile import Profile
    from .runtime.program import Program
    from .runtime.signature import Signature

#: Specialised programs kept per function; the least recently used goes.
SPECIALISATIONS = 64


def compile(
    module: Any,
    *,
    entry: str | None = None,
    target: str = "host",
    threads: int | None = None,
    memo: str | os.PathLike[str] | None = None,
    optimize: bool | None = None,
    cache: bool = True,
    top_k: int | None = None,
    measure: bool = False,
    constants: Mapping[int | str, Any] | None = None,
    pack_constants: bool = True,
) -> CompiledModule:
    """Compile a module with linalg ops for this machine.

    module:   MLIR text, bytecode, the path of a file with either, an `mlir.ir.Module`, or an op of one.
    entry:    the function to compile; without it, every public function can be called by its name.
    target:   the machine to search for: `host` (`MORELLO_TARGET`, if that is set), `avx2`, `avx512`, or a
              CPU by LLVM's name (`znver4`). What this machine cannot run can be emitted, not called.
    threads:  how many threads the code may use (default: `MORELLO_NUM_THREADS`, else all cores
              that this process may use).
    memo:     the memo file, or `off` (default: `MORELLO_MEMO`, else the user's file).
    optimize: False runs everything through upstream's passes alone. By default our passes do what they can.
    cache:    whether machine code may be kept on disk.
    top_k:    list so many of the cheapest schedules of each Spec in `specs` (`alternatives`).
    measure:  time the cheapest schedules (top_k of them, or 8) on this machine instead, and take the fastest; what was
              found is kept in the memo (docs/tuning.md).
    constants: arrays for arguments of the function, by position or by name, as weights are: they become constants of
              the module, and calls leave them out. They are copied, unless they are contiguous and nobody can write to
              them.
    pack_constants: whether constants, and arguments marked `morello.constant`, may be packed once, when the code first
              runs, instead of in every call.

    A module with one function (or with `entry`) whose shapes are all static is compiled at once; anything else when it
    is first called, once for each set of argument shapes.
    Raises CompileError (the module is invalid, or nothing can lower one of its ops), InputError (no such file or
    entry; a memo that is no path; top_k below 1; measuring for a target whose code this machine cannot run).
    """
    with IMPORTING:
        from .runtime import arguments  # noqa: F401 - what calls with other shapes import

        started = time.perf_counter()
        parsed = _parse(module)
        settings = settings_of(target, threads, memo, optimize, top_k, measure, pack_constants)
        compiled = CompiledModule(parsed, settings, cache, entry, time.perf_counter() - started, constants or {})
    compiled._compile_eagerly()
    return compiled


def _parse(module: Any) -> Any:
    """An `mlir.ir.Module`, whatever it came as. Raises InputError, CompileError."""
    from .runtime.context import parse_file, parse_text

    if isinstance(module, (str, bytes)) and _looks_like_source(module):
        return parse_text(module)
    if isinstance(module, (str, os.PathLike)):
        return parse_file(Path(module))
    operation = getattr(module, "operation", None)
    if operation is None or not hasattr(operation, "context"):
        raise InputError(f"expected MLIR text, a path or an MLIR module, got a {type(module).__name__}")
    if operation.name != "builtin.module":
        raise InputError(f"expected a module, got '{operation.name}'")
    return module


def _looks_like_source(text: str | bytes) -> bool:
    """Text or bytecode rather than a path: a path has no line break, and no bracket that MLIR needs unless the file is
    there."""
    if isinstance(text, bytes) or not text.strip() or "\n" in text:
        return True
    return any(c in text for c in "({") and not _is_file(text)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a zero in it
        return False


def settings_of(
    target: str = "host",
    threads: int | None = None,
    memo: str | os.PathLike[str] | None = None,
    optimize: bool | None = None,
    top_k: int | None = None,
    measure: bool = False,
    pack_constants: bool = True,
) -> Settings:
    """What these options of `compile` ask for. Raises InputError, as it does."""
    from . import targets

    name, count = _target_name(target), _checked_count(top_k, measure, target)
    many, ours = targets.thread_count(threads), _optimizes(optimize)
    return Settings(name, _memo_name(memo), many, ours, count, measure, pack_constants)


def _target_name(target: str) -> str:
    """A target's name, checked now: code for it may be compiled much later. Raises InputError: unknown."""
    from .targets import get_target

    get_target(target)
    # What the environment says of `host` counts when the function is made, not when it is called.
    return os.environ.get("MORELLO_TARGET") or target if target == "host" else target


def _memo_name(memo: str | os.PathLike[str] | None) -> str:
    """The memo file by name; raises InputError for what is no name."""
    name = os.environ.get("MORELLO_MEMO", "") if memo is None else memo
    if isinstance(name, (str, os.PathLike)) and isinstance(path := os.fspath(name), str):
        return path
    raise InputError(f"memo: expected a path or 'off', got a {type(memo).__name__}")


def _checked_count(top_k: int | None, measure: bool, target: str) -> int | None:
    """`top_k`, once it is known that what is asked for can be done. Raises InputError."""
    if top_k is not None or measure:
        from .targets import get_target
        from .tuning.tuner import candidate_count, check_measurable

        candidate_count(top_k, measure)
        if measure:
            check_measurable(get_target(target))
    return top_k


def _optimizes(optimize: bool | None) -> bool:
    from .passes.pipelines import can_optimize

    return can_optimize() if optimize is None else optimize


class CompiledFunction:
    """One function of a compiled module: `f(*arrays)` returns None, an array, a numpy scalar, or a tuple of these."""

    def __init__(self, owner: CompiledModule, name: str, signature: Signature):
        self.name = name
        self.signature = signature
        self._owner = owner
        self._lock = lock()
        self._programs: OrderedDict[tuple[tuple[int, ...] | None, ...] | None, Program] = OrderedDict()
        self._static: Program | None = None
        self._direct: Callable[..., Any] | None = None

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run with arrays (numpy, torch, DLPack, buffers) for tensors and memrefs, and numbers for scalars.

        out: numpy arrays that receive the results that are tensors (one, or a tuple in order), row-major, writable, of
             the results' dtypes and shapes, and without memory that an argument has too. By default they are new.
        Raises InputError where an argument does not fit, CompileError, AssertionFailed (an assertion of the program).
        """
        if out is not None:
            # The native way takes tuples alone: no other thread can take an array out of one while the program runs.
            into = (self._static or self.program(args)).into
            return into(*args, tuple(out) if type(out) is list else out)
        if self._direct is not None:
            return self._direct(*args)
        return self.program(args).call(*args)

    def bind(self, *args: Any, out: Any = None) -> Callable[[], Any]:
        """A function without arguments that runs with these ones: everything is checked now, and a call costs little
        more than entering the program (a tenth of a microsecond).

        The arrays are used where they lie: each call reads what they hold then, and they live as long as the function.
        What needs copying first is refused: bind a copy in row-major order. A scalar keeps the value that it has now.
        Every call returns the same arrays, overwritten: those of `out` (see above), or new ones made now. So results
        that are kept across calls must be copied, and one bound function must not run in two threads at once; bind once
        for each thread.
        Raises InputError where an argument does not fit, CompileError.
        """
        return self.program(args).bind(args, out)

    def program(self, args: tuple[Any, ...] = ()) -> Program:
        """The program that a call with these arguments runs; compiled now if it is not there yet."""
        if not self.signature.is_dynamic:
            with self._lock:
                if self._static is None:
                    self._static = self._owner._build(self, None)
                    self._direct = self._static.call
            return self._static
        key = self._shapes(args)
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)
                return self._programs[key]
            program = self._owner._build(self, key)
            self._programs[key] = program
            if len(self._programs) > SPECIALISATIONS:
                self._programs.popitem(last=False)
            return program

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs compiled so far."""
        return (self._static,) if self._static else tuple(self._programs.values())

    def _shapes(self, args: tuple[Any, ...]) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of every argument, checked; None for scalars. Raises InputError."""
        from .runtime.arguments import as_array, check_array

        inputs = self.signature.inputs
        if len(args) != len(inputs):
            raise InputError(f"@{self.name}: expected {len(inputs)} arguments, got {len(args)}")
        shapes: list[tuple[int, ...] | None] = []
        for position, (value, parameter) in enumerate(zip(args, inputs, strict=True)):
            if parameter.shape is None:
                shapes.append(None)
                continue
            where = f"@{self.name}: argument {position}"
            array = as_array(value, where)
            check_array(array, parameter, where)
            shapes.append(array.shape)
        return tuple(shapes)


def _entries(module: Any, entry: str | None) -> list[Any]:
    """The functions that can be called: the one of that name, or all public ones, or all. Raises InputError."""
    from .passes.symbols import entry_function, functions, has_body, is_public

    if entry is not None:
        try:
            return [entry_function(module, entry)]
        except ValueError as error:
            raise InputError(str(error)) from error
    defined = [f for f in functions(module) if has_body(f)]
    chosen = [f for f in defined if is_public(f)] or defined
    if not chosen:
        raise InputError("the module has no function with a body: there is nothing to enter")
    return chosen


class CompiledModule:
    """The functions of a module, each callable by its name as an attribute, `cm.NAME(*arrays)`; or, where there is one
    function to choose, `cm(*arrays)`. A function of the module that is called like something here is in `functions`.

    functions: name -> CompiledFunction.
    specs:     what was lifted, a dict each: spec, function, source (search, memo, shipped, measured, manual), search_s,
               cost, schedule; measured_s and model_s, alternatives where they were asked for, else None.
    times:     seconds spent so far: parse_s, lift_s, search_s, apply_s, llvm_s.
    lifted, left: how many linalg ops the search took care of, and how many upstream's passes lowered.
    The last three speak of everything compiled so far.
    """

    def __init__(
        self,
        module: Any,
        settings: Settings,
        cache: bool,
        entry: str | None,
        parse_seconds: float,
        constants: Mapping[int | str, Any] = MappingProxyType({}),
    ):
        from .passes.symbols import entry_function, symbol_name
        from .runtime.constants import Constants
        from .runtime.context import LOCK
        from .runtime.signature import signature_of

        self._module = module
        self._settings = settings
        self._cache = cache
        self._parse_seconds = parse_seconds
        self._signature_errors: dict[str, MorelloError] = {}
        self.functions: dict[str, CompiledFunction] = {}
        with LOCK, module.operation.context:
            chosen = _entries(module, entry)
            given: dict[str, Any] = {}
            if constants:
                from .runtime.given import bind

                if len(chosen) > 1:
                    raise InputError("constants are for one function: choose it with entry=")
                name = symbol_name(chosen[0]) or ""
                self._module, given = bind(module, name, constants)
                chosen = [entry_function(self._module, name)]
            self._constants = Constants(given)
            for function in chosen:
                name = symbol_name(function) or ""
                try:
                    self.functions[name] = CompiledFunction(self, name, signature_of(function))
                except MorelloError as error:
                    # A driver that nobody wants to call must not keep the others from compiling.
                    if len(chosen) == 1:
                        raise
                    self._signature_errors[name] = error
        # Found at once, where `__getattr__` would take a microsecond. What a module has itself keeps its name.
        own = set(super().__dir__())
        vars(self).update((name, each) for name, each in self.functions.items() if name not in own)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Call the only function. Raises InputError where there are several, and what the function raises."""
        return self._only()(*args, out=out)

    def bind(self, *args: Any, out: Any = None) -> Callable[[], Any]:
        """`CompiledFunction.bind` of the only function. Raises InputError where there are several."""
        return self._only().bind(*args, out=out)

    def profile(self, *args: Any, seconds: float = 0.2) -> Profile:
        """Where the time of the only function goes: how much of it is in code of ours, and in which goals.

        It is compiled once more, to count cycles, and runs with these arguments for so many seconds; what it writes to
        stays written. `str()` of the result is a table.
        Raises InputError where there are several functions or an argument does not fit, CompileError.
        """
        from .runtime.profile import profile

        function = self._only()
        program = self._build(function, function.program(args).shapes, profile=True)
        return profile(program, args, seconds)

    def __getattr__(self, name: str) -> CompiledFunction:
        functions = self.__dict__.get("functions", {})
        if name in self.__dict__.get("_signature_errors", {}):
            raise self._signature_errors[name]
        raise AttributeError(f"the module has no public function @{name} (it has: {', '.join(functions)})")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]

    @property
    def specs(self) -> list[dict[str, Any]]:
        """What was lifted, over everything compiled so far."""
        return [spec for build in self._builds() for spec in build.specs]

    @property
    def lifted(self) -> int:
        """How many linalg ops the search took care of."""
        return sum(build.lifted for build in self._builds())

    @property
    def left(self) -> int:
        """How many linalg ops upstream's passes lowered."""
        return sum(build.left for build in self._builds())

    @property
    def times(self) -> dict[str, float]:
        """Seconds spent: parse_s, lift_s, search_s, apply_s, llvm_s (lowering to LLVM and LLVM itself)."""
        total = {"parse_s": self._parse_seconds, "lift_s": 0.0, "search_s": 0.0, "apply_s": 0.0, "llvm_s": 0.0}
        for program in self._programs():
            for key in ("lift_s", "search_s", "apply_s"):
                total[key] += program.build.times[key]
            total["llvm_s"] += program.build.times["lower_s"] + program.llvm_seconds
        return total

    @property
    def messages(self) -> list[str]:
        """The remarks and warnings of the passes, as MLIR prints them."""
        return [str(message) for build in self._builds() for message in build.messages]

    def emit(self, form: Literal["llvm", "asm", "obj", "mlir"], *args: Any) -> str | bytes:
        """The code of the only function in one form.

        form: `mlir` before the lowering to LLVM, optimised `llvm` IR, `asm`, or the bytes of an object file (`obj`).
        args: arguments whose shapes to specialise on, where shapes are dynamic.
        Raises InputError where there are several functions.
        """
        from .runtime import jit

        function = self._only()
        program = function.program(args)
        if form == "mlir":
            return self._lower(function, program.shapes, keep_mlir=True).mlir
        if form not in ("llvm", "asm", "obj"):
            raise InputError(f"cannot emit '{form}': choose llvm, asm, obj or mlir")
        result: str | bytes = jit.emit(program.build.ir, program.options, form)
        return result

    def _only(self) -> CompiledFunction:
        if len(self.functions) != 1:
            names = ", ".join(f"@{name}" for name in self.functions)
            raise InputError(f"several functions could be the entry ({names}): choose one by name or with entry=")
        return next(iter(self.functions.values()))

    def _programs(self) -> list[Program]:
        return [program for function in self.functions.values() for program in function.programs]

    def _builds(self) -> list[Build]:
        return [program.build for program in self._programs()]

    def _compile_eagerly(self) -> None:
        """Compile now what needs no arguments to know its shapes, if it is the only function there is to call."""
        if len(self.functions) == 1 and not self._signature_errors:
            function = self._only()
            if not function.signature.is_dynamic:
                function.program()

    def _build(
        self,
        function: CompiledFunction,
        shapes: tuple[tuple[int, ...] | None, ...] | None,
        *,
        profile: bool = False,
    ) -> Program:
        with compiling():
            return self._built(function, shapes, profile)

    def _built(
        self, function: CompiledFunction, shapes: tuple[tuple[int, ...] | None, ...] | None, profile: bool
    ) -> Program:
        from .runtime.cache import shared_cache
        from .runtime.jit import Options
        from .runtime.program import Program
        from .targets import code_for, refusal

        built = self._lower(function, shapes, profile=profile)
        # Scalar loops of upstream's lowering profit from LLVM's vectorisers; searched code has its vectors already.
        cpu, features = code_for(self._settings.target)
        options = Options(vectorize=built.left > 0 or built.lifted == 0, cpu=cpu, features=features)
        cache = shared_cache() if self._cache else None

        def careful() -> Program:
            """For arguments that overlap: upstream's loops read and write in one defined order."""
            plain = Options(cpu=cpu, features=features)
            return Program(self._lower(function, shapes, optimize=False), plain, cache, shapes)

        program = Program(built, options, cache, shapes, careful if built.lifted else None)
        refused = refusal(self._settings.target)
        if refused is not None:
            program.refuse(refused)
        return program

    def _lower(
        self,
        function: CompiledFunction,
        shapes: tuple[tuple[int, ...] | None, ...] | None,
        *,
        keep_mlir: bool = False,
        optimize: bool = True,
        profile: bool = False,
    ) -> Build:
        from .runtime.build import Request, build

        settings = replace(self._settings, optimize=self._settings.optimize and optimize)
        request = Request(function.name, shapes, settings, keep_mlir, profile)
        return build(self._module, request, self._constants)
