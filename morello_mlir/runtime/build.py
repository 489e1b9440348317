"""Building one entry function for one set of argument shapes: from a parsed module to LLVM IR with its wrapper."""

from __future__ import annotations

import os
import re
import time
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from morello_mlir import diagnostics
from morello_mlir.aligned import aligned
from morello_mlir.errors import CompileError, InputError, PassError

from . import fastcall, wrapper
from .constants import Constants
from .context import LOCK
from .settings import Settings
from .signature import Signature, signature_of

_PREFIX = "fn."

#: Set to anything, this variable makes a failure of our own passes an error instead of a warning.
STRICT = "MORELLO_STRICT"


@dataclass(frozen=True)
class Request:
    """What to build.

    entry:    the function.
    shapes:   the shape of every argument (None for a scalar), or None to leave dynamic sizes dynamic.
    settings: what `compile()` was given; optimize: use the optimising passes, else upstream's only.
    keep_mlir: also give the module before lowering, as text.
    profile:  count cycles (see the pass `morello-profile`).
    """

    entry: str
    shapes: tuple[tuple[int, ...] | None, ...] | None
    settings: Settings
    keep_mlir: bool = False
    profile: bool = False


@dataclass
class Build:
    """A lowered entry function.

    ir:         LLVM IR text with the wrappers.
    signature:  what the wrapper takes and returns.
    layout:     the packet of the wrapper.
    assertions: messages by number, from 1.
    direct:     whether Python can enter it directly (see fastcall).
    specs:      a dict per lifted Spec (see `statistics.collect_specs`).
    lifted, left: how many linalg ops the optimising passes took, and how many upstream's passes lowered.
    times:      lift_s, search_s, apply_s, lower_s.
    flops:      of the contractions; None where sizes are dynamic.
    constants:  contents of the external symbols, aligned; the program must keep them alive.
    panels:     the same for buffers of what is packed ahead, which the program fills when it first runs.
    mlir:       the module before lowering, as text, if it was asked for.
    messages:   remarks and warnings of the passes.
    counted:    what the counters count, where cycles are counted; they are the constant `morello_profile`.
    functions:  by function, the Spec in it, there.
    """

    ir: str
    signature: Signature
    layout: wrapper.Layout
    assertions: tuple[str, ...]
    direct: bool
    specs: list[dict[str, Any]]
    lifted: int
    left: int
    times: dict[str, float]
    flops: int | None
    constants: dict[str, np.ndarray]
    panels: dict[str, np.ndarray]
    mlir: str
    messages: list[diagnostics.Diagnostic] = field(default_factory=list)
    counted: tuple[str, ...] = ()
    functions: dict[str, str] = field(default_factory=dict)


def build(module: Any, request: Request, constants: Constants) -> Build:
    """Lower a copy of `module` (an `mlir.ir.Module`) for one request. constants: those of all builds of `module`.

    Raises CompileError: a pass failed, or ops are left that nothing can lower. InputError: the shapes contradict each
    other.
    """
    with LOCK, module.context:
        if not request.settings.optimize:
            return _Builder(module, request, constants).run()
        try:
            return _Builder(module, request, constants).run()
        except _OptimizerError as error:
            # A schedule by hand is an order: code that ignores it would not be what was asked for.
            if os.environ.get(STRICT) or _has_schedules(module):
                raise error.cause from None
            # Nothing fails to compile because our passes cannot deal with it; but nobody should wonder why it is slow.
            plain = replace(request, settings=replace(request.settings, optimize=False))
            built = _Builder(module, plain, constants).run()
            how = f"set {STRICT}=1 to have it as an error, with its place"
            warnings.warn(f"@{request.entry} is compiled by upstream's passes alone: {error} ({how})", stacklevel=2)
            return built


def _has_schedules(module: Any) -> bool:
    """Whether somebody wrote schedules, or goals, into the module."""
    from morello_mlir.dialect import is_chain, is_nest, is_spec
    from morello_mlir.lifting.emit import SCHEDULE
    from morello_mlir.passes.symbols import all_ops

    kinds = (is_spec, is_nest, is_chain)
    return any(SCHEDULE in op.attributes or any(kind(op.name) for kind in kinds) for op in all_ops(module))


class _OptimizerError(Exception):
    """One of the optimising passes failed. `cause` is how."""

    def __init__(self, stage: str, cause: Exception):
        first = next(iter(str(cause).splitlines()), type(cause).__name__)
        super().__init__(f"{stage} failed: {first}")
        self.cause = cause


class _Builder:
    def __init__(self, module: Any, request: Request, constants: Constants):
        self.request = request
        self.module = copy_of(module)
        self.constants = constants
        self.times: dict[str, float] = {}
        self.messages: list[diagnostics.Diagnostic] = []

    def run(self) -> Build:
        from morello_mlir.passes import pipelines

        from . import statistics

        signature = self._prepare()
        request = self.request
        stages = pipelines.stages(request.settings)
        self._run(stages["legalize"])
        before = statistics.linalg_ops(self.module).total()
        flops = statistics.contraction_flops(self.module)
        self._stage("lift", stages["lift"])
        self.constants.name_contents(self.module)
        self._stage("search", stages["search"])
        specs = statistics.collect_specs(self.module)
        if not request.keep_mlir:
            # Before schedules are executed the module is small. What they add has names that no library has.
            _rename_functions(self.module)
        functions = statistics.goal_functions(self.module) if request.profile else {}
        self._stage("apply", stages["apply"])
        counted, counters = self._count() if request.profile else ((), {})
        left = statistics.linalg_ops(self.module).total() if request.settings.optimize else before
        mlir = str(self.module) if request.keep_mlir else ""
        constants, panels = self.constants.extract(self.module), self.constants.take_panels(self.module)
        started = time.perf_counter()
        if request.keep_mlir:
            _rename_functions(self.module)
        # Nothing comes from outside any more: what is wrong now is a pass's fault, and LLVM verifies as well.
        self._run(stages["lower"], verify=bool(os.environ.get(STRICT)))
        ir, layout, assertions, direct = self._translate(signature)
        self.times["lower_s"] = time.perf_counter() - started
        return Build(
            ir, signature, layout, assertions, direct, specs, max(before - left, 0), left, self.times, flops,
            constants | counters, panels, mlir, self.messages, counted, functions,
        )  # fmt: skip

    def _count(self) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
        """Has the program count cycles; returns what, and the counters by symbol."""
        import mlir.ir as ir

        from morello_mlir.passes.morello_profile import COUNTED, SYMBOL, Profile

        self._run_pass(Profile(entry=_symbol(self.request.entry)))
        listed = ir.ArrayAttr(self.module.operation.attributes[COUNTED])
        counted = tuple(ir.StringAttr(each).value for each in listed)
        return counted, {SYMBOL: aligned(16 * len(counted))}

    def _prepare(self) -> Signature:
        """Keep the entry only, fix its shapes, and let the caller supply the memory of results."""
        from morello_mlir.passes.morello_return_to_argument import ReturnToArgument
        from morello_mlir.passes.morello_select_entry import SelectEntry
        from morello_mlir.passes.morello_specialize import Specialize
        from morello_mlir.passes.symbols import function_named

        request = self.request
        # Not as text: the name of a function may hold anything, quotes and braces too.
        self._run_pass(SelectEntry(entry=request.entry))
        self._run("morello-check-known")
        if request.shapes is not None:
            shapes = tuple("x".join(map(str, s)) if s else "scalar" for s in request.shapes)
            try:
                self._run_pass(Specialize(entry=request.entry, shapes=shapes))
            except PassError as error:
                raise InputError(f"the argument shapes do not fit the program: {error}") from error
        self._run_pass(ReturnToArgument(entry=request.entry))
        return signature_of(function_named(self.module, request.entry))

    def _stage(self, name: str, pipeline: str) -> None:
        started = time.perf_counter()
        try:
            if pipeline:
                self._run(pipeline)
        except Exception as error:
            if not self.request.settings.optimize:
                raise
            raise _OptimizerError(name, error) from error
        self.times[f"{name}_s"] = time.perf_counter() - started

    def _run(self, pipeline: str, *, verify: bool = True) -> None:
        from morello_mlir.passes.pipeline import run_pipeline

        self.messages += run_pipeline(self.module, pipeline, verify=verify)

    def _run_pass(self, instance: Any) -> None:
        from morello_mlir.passes.pipeline import run_pass

        self.messages += run_pass(self.module, instance)

    def _translate(self, signature: Signature) -> tuple[str, wrapper.Layout, tuple[str, ...], bool]:
        import mlir.ir as ir
        from mlir.dialects.llvm import translate_module_to_llvmir

        from morello_mlir.passes.morello_legalize_assert import MESSAGES
        from morello_mlir.passes.morello_strip_attributes import StripAttributes

        entry, bare = self._lowered_entry(signature)
        listed = ir.ArrayAttr(entry.attributes[MESSAGES]) if MESSAGES in entry.attributes else []
        assertions = tuple(ir.StringAttr(each).value for each in listed)
        StripAttributes(keep=("llvm",)).run(self.module)
        _make_internal(self.module)
        text = translate_module_to_llvmir(self.module.operation)
        layout = wrapper.layout_of(signature, status=bool(assertions))
        text += wrapper.packet_wrapper(signature, _symbol(signature.name), layout, bare=bare)
        direct = fastcall.serves(signature, asserts=bool(assertions))
        if direct and fastcall.FIELDS is not None:
            text += fastcall.python_wrapper(signature, fastcall.FIELDS, asserts=bool(assertions))
        return text, layout, assertions, direct

    def _lowered_entry(self, signature: Signature) -> tuple[Any, bool]:
        """The `llvm.func` of the entry, and whether it takes bare pointers."""
        from morello_mlir.passes.morello_bare_pointers import BARE
        from morello_mlir.passes.symbols import symbol_name

        for op in self.module.operation.regions[0].blocks[0]:
            if symbol_name(op) == _symbol(signature.name) and op.operation.name == "llvm.func":
                return op.operation, BARE in op.operation.attributes
        raise CompileError(f"function @{signature.name} was lost on the way to LLVM")


def copy_of(module: Any) -> Any:
    """A new `mlir.ir.Module` with the same contents. (`operation.clone()` gives one without an owner, on which some of
    the bindings' functions fail and others crash.)"""
    import mlir.ir as ir

    original = module.operation
    copy = ir.Module.create(original.location)
    for name in original.attributes:
        copy.operation.attributes[name] = original.attributes[name]
    with ir.InsertionPoint(copy.body):
        for op in original.regions[0].blocks[0]:
            op.operation.clone()
    return copy


def _rename_functions(module: Any) -> None:
    """Give the functions defined here names that none of a C library has: a program may call its matrix product `free`,
    or `expf`."""
    import mlir.ir as ir

    from morello_mlir.passes.symbols import functions, has_body, symbol_name

    for function in functions(module):
        name = symbol_name(function)
        if name is not None and has_body(function):
            ir.SymbolTable.replace_all_symbol_uses(name, _symbol(name), module.operation)
            ir.SymbolTable.set_symbol_name(function, _symbol(name))


def _symbol(name: str) -> str:
    """The LLVM name of a function: in letters that need no quoting, and different for different functions."""
    return _PREFIX + re.sub(r"[^\w.$-]", lambda found: f"%{ord(found[0]):x}%", name, flags=re.ASCII)


def _make_internal(module: Any) -> None:
    """Let LLVM inline, specialise and drop what only the wrappers call."""
    import mlir.ir as ir

    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for op in module.operation.regions[0].blocks[0]:
        operation = op.operation
        if operation.name == "llvm.func" and len(operation.regions[0].blocks) > 0:
            operation.attributes["linkage"] = internal
            if "sym_visibility" in operation.attributes:
                del operation.attributes["sym_visibility"]
