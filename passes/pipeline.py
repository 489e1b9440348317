"""Textual pipelines in which our passes and upstream's mix at any nesting.

Upstream's passes run in native pass managers; ours are called from Python between native runs. (The bindings can also
add a Python pass to a native pass manager, but a mistake there aborts the process instead of raising.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from morello_mlir import diagnostics
from morello_mlir.diagnostics import Diagnostic
from morello_mlir.errors import MorelloError, PassError, PipelineError
from morello_mlir.locks import in_mlir

from . import registry
from .base import Pass
from .instrument import Instrument
from .pipeline_text import Element, parse_text, pipeline_error, to_text

MODULE = "builtin.module"
# A pipeline that expands to itself would never end; no honest one nests this deep.
_MAX_EXPANSIONS = 16


@dataclass(frozen=True)
class _Native:
    """Neighbouring upstream elements, run by one native pass manager."""

    elements: tuple[Element, ...]


@dataclass(frozen=True)
class _Ours:
    """A pass of ours, with its options parsed."""

    element: Element
    instance: Pass


@dataclass(frozen=True)
class _Nest:
    """A nest with a pass of ours somewhere in it: walked by us."""

    element: Element
    steps: tuple[_Step, ...]


_Step = _Native | _Ours | _Nest


class Pipeline:
    """A checked pipeline, ready to run on any number of modules.

    anchor: the op it runs on.
    """

    def __init__(self, elements: tuple[Element, ...], anchor: str = MODULE, *, implicit_nesting: bool = False):
        """Check `elements` (children of `anchor`) and load the passes they name.

        implicit_nesting: wrap a pass that wants another anchor in a nest on it (`--pass` flags of the command line).
        Raises PipelineError: an unknown pass or option, a pass on the wrong op.
        """
        self.anchor = anchor
        self._implicit = implicit_nesting
        self._steps = self._plan(self._expand(elements, anchor, 0), anchor)

    @classmethod
    def parse(cls, text: str, anchor: str = MODULE) -> Pipeline:
        """From text: `builtin.module(...)`, or bare elements that run on `anchor`. Raises PipelineError."""
        elements = parse_text(text)
        if len(elements) == 1 and elements[0].is_nest and elements[0].name == anchor:
            return cls(elements[0].children or (), anchor)
        return cls(elements, anchor)

    @property
    def elements(self) -> tuple[Element, ...]:
        """What runs on the anchor, with pipelines expanded and implied nests made explicit."""
        return _elements(self._steps)

    def __str__(self) -> str:
        return f"{self.anchor}({to_text(self.elements)})"

    # ---- checking -------------------------------------------------------------------------------------------------

    def _expand(self, elements: tuple[Element, ...], anchor: str, depth: int) -> tuple[Element, ...]:
        """Replace named pipelines by what they stand for, at every level."""
        if depth > _MAX_EXPANSIONS:
            raise pipeline_error(f"pipeline '{elements[0].name}' expands without end", elements[0].offset)
        out: list[Element] = []
        for element in elements:
            if element.children is not None:
                if "." not in element.name and element.name != "any":
                    raise pipeline_error(f"'{element.name}' is not the name of an op to nest passes on", element.offset)
                children = self._expand(element.children, element.name, depth)
                # An empty nest does nothing, and upstream does not accept it.
                if children:
                    out.append(Element(element.name, None, children, element.offset))
                continue
            item = _at_offset(element, registry.lookup, element.name) if registry.known(element.name) else None
            if not isinstance(item, registry.NamedPipeline):
                out.append(element)
                continue
            if item.anchor not in (None, anchor):
                raise _wrong_anchor("pipeline", element, item.anchor, anchor)
            expansion = parse_text(_at_offset(element, item.expand, element.options or ""))
            if len(expansion) == 1 and expansion[0].is_nest and expansion[0].name == anchor:
                expansion = expansion[0].children or ()
            located = tuple(e.at(element.offset) for e in expansion)
            out += self._expand(located, anchor, depth + 1)
        return tuple(out)

    def _plan(self, elements: tuple[Element, ...], anchor: str) -> tuple[_Step, ...]:
        steps: list[_Step] = []
        run: list[Element] = []

        def flush() -> None:
            if run:
                steps.append(_Native(tuple(run)))
                run.clear()

        for element in elements:
            if not _has_ours(element):
                run.append(self._checked_native(element, anchor))
                continue
            flush()
            if element.children is not None:
                if element.name == "any":
                    raise pipeline_error("passes of ours cannot be nested in 'any(...)': name the op", element.offset)
                steps.append(_Nest(element, self._plan(element.children, element.name)))
            else:
                steps.append(self._plan_ours(element, anchor))
        flush()
        return tuple(steps)

    def _plan_ours(self, element: Element, anchor: str) -> _Step:
        item = registry.lookup(element.name)
        assert not isinstance(item, registry.NamedPipeline), "pipelines are expanded before planning"
        step = _Ours(element, _at_offset(element, item.from_options, element.options or ""))
        if item.anchor in (None, anchor):
            return step
        if not self._implicit:
            raise _wrong_anchor("pass", element, item.anchor, anchor)
        return _Nest(Element(str(item.anchor), None, (element,), element.offset), (step,))

    def _checked_native(self, element: Element, anchor: str) -> Element:
        """The element, known to be accepted by a native pass manager on `anchor`. Raises PipelineError."""
        message = self._native_complaint(str(element), anchor)
        if message is None:
            return element
        wanted = re.search(r"restricted to '([^']+)'", message)
        if self._implicit and wanted:
            nested = Element(wanted[1], None, (element,), element.offset)
            if self._native_complaint(str(nested), anchor) is None:
                return nested
        raise self._explain(element, anchor, message)

    def _explain(self, element: Element, anchor: str, message: str) -> PipelineError:
        """The innermost element of a rejected native one that is at fault, and why."""
        for child in element.children or ():
            complaint = self._native_complaint(str(child), element.name)
            if complaint is not None:
                return self._explain(child, element.name, complaint)
        if element.is_nest:
            return pipeline_error(f"'{element}' is not a pipeline: {_first_line(message)}", element.offset)
        wanted = re.search(r"restricted to '([^']+)'", message)
        if wanted:
            return _wrong_anchor("pass", element, wanted[1], anchor)
        if "does not refer to a registered pass" in message:
            return pipeline_error(f"unknown pass '{element.name}'", element.offset)
        unknown = re.search(r"no such option (\S+)", message)
        if unknown:
            return pipeline_error(f"pass '{element.name}' has no option '{unknown[1]}'", element.offset)
        if element.options is not None:
            return pipeline_error(f"pass '{element.name}': malformed options '{element.options}'", element.offset)
        return pipeline_error(f"pass '{element.name}': {_first_line(message)}", element.offset)

    @staticmethod
    def _native_complaint(text: str, anchor: str) -> str | None:
        """What the native parser has against `text` on `anchor`, or None."""
        from mlir.passmanager import PassManager

        try:
            PassManager(anchor, _checking_context()).add(text)
        except ValueError as error:
            return str(error)
        return None

    # ---- running --------------------------------------------------------------------------------------------------

    def run(self, op: Any, *, verify: bool = True, instruments: tuple[Instrument, ...] = ()) -> tuple[Diagnostic, ...]:
        """Run on `op` (an `mlir.ir.Module` or operation) in place; returns the warnings and remarks.

        verify: check the IR after every pass; off saves time where the pipeline is trusted.
        instruments: told before and after every pass; with any, native passes run one at a time.
        Raises PassError, whose `diagnostics` are MLIR-style lines, when a pass fails or leaves invalid IR;
        PipelineError when `op` is not what the pipeline runs on.
        """
        operation = op.operation
        if operation.name != self.anchor:
            raise PipelineError(f"the pipeline runs on '{self.anchor}', not on '{operation.name}'")
        if any(not isinstance(step, _Native) for step in self._steps):
            _load_dialect(operation)
        with operation.context, diagnostics.capture(operation.context) as sink:
            _Runner(sink, verify, instruments).run(self._steps, operation)
        return tuple(sink.diagnostics)


class _Runner:
    """One run of a pipeline."""

    def __init__(self, sink: diagnostics.Sink, verify: bool, instruments: tuple[Instrument, ...]):
        self.sink = sink
        self.verify = verify
        self.instruments = instruments

    def run(self, steps: tuple[_Step, ...], op: Any) -> None:
        for step in steps:
            if isinstance(step, _Ours):
                self._run_ours(step, op)
            elif isinstance(step, _Nest):
                with self._watched(step.element, op):
                    # A list: passes may add and remove functions.
                    for child in [c for c in _children(op) if c.name == step.element.name]:
                        self.run(step.steps, child)
            elif self.instruments:
                for element in step.elements:
                    self._run_single(element, op)
            else:
                self._run_native(step.elements, op)

    def _run_ours(self, step: _Ours, op: Any) -> None:
        name = step.element.name
        mark, errors = len(self.sink.diagnostics), self.sink.errors
        with self._watched(step.element, op):
            try:
                step.instance.run(op)
            except PassError as error:
                raise self._failure(name, mark, error) from error
            except MorelloError as error:
                # From the pure core, which knows no locations.
                diagnostics.emit(diagnostics.ERROR, f"'{op.name}' op {error}", op.location)
                raise self._failure(name, mark, error) from error
            except _mlir_error() as error:
                raise self._failure(name, mark, error) from error
            if self.sink.errors > errors:
                raise self._failure(name, mark, None)
            if self.verify:
                self._check(name, mark, op)

    def _check(self, name: str, mark: int, op: Any) -> None:
        from morello_mlir.dialect import verify_specs

        try:
            valid = op.verify()
        except _mlir_error() as error:
            raise self._failure(name, mark, error) from error
        if not valid or not verify_specs(op):
            raise self._failure(name, mark, None)

    def _run_single(self, element: Element, op: Any) -> None:
        """A native element under instruments: a nest is split into nests of one pass each."""
        if element.children is None:
            with self._watched(element, op):
                self._run_native((element,), op)
            return
        with self._watched(element, op):
            for child in _singles(element):
                with self._watched(child[1], op):
                    self._run_native((child[0],), op)

    def _run_native(self, elements: tuple[Element, ...], op: Any) -> None:
        from mlir.passmanager import PassManager

        in_mlir.here()
        mark = len(self.sink.diagnostics)
        manager = PassManager(op.name, op.context)
        manager.add(to_text(elements))
        manager.enable_verifier(self.verify)
        for instrument in self.instruments:
            instrument.configure_native(manager)
        try:
            manager.run(op)
        except _mlir_error() as error:
            raise self._failure(to_text(elements), mark, error) from error

    def _watched(self, element: Element, op: Any) -> Any:
        return _Watch(self.instruments, element, op)

    def _failure(self, name: str, mark: int, cause: Exception | None) -> PassError:
        """The PassError for what was reported since `mark`; makes a diagnostic up where the pass gave none."""
        lines = [str(d) for d in self.sink.since(mark) if d.severity == diagnostics.ERROR]
        if not lines and isinstance(cause, PassError):
            lines = list(cause.diagnostics) or [str(cause)]
        if not lines:
            reason = f": {_first_line(str(cause))}" if cause else ""
            made_up = diagnostics.emit(diagnostics.ERROR, f"pass '{name}' failed{reason}")
            lines = [str(made_up)]
        return PassError("\n".join(lines), tuple(lines), pass_name=name, reported=tuple(self.sink.diagnostics))


class _Watch:
    """Tells the instruments that an element starts and, unless it failed, that it has ended."""

    def __init__(self, instruments: tuple[Instrument, ...], element: Element, op: Any):
        self.instruments = instruments
        self.element = element
        self.op = op

    def __enter__(self) -> None:
        for instrument in self.instruments:
            instrument.before(self.element, self.op)

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        for instrument in reversed(self.instruments):
            instrument.after(self.element, self.op, failed=kind is not None)


def run_pipeline(op: Any, text: str, *, verify: bool = True) -> tuple[Diagnostic, ...]:
    """Parse and run a pipeline in one call. Raises what `Pipeline.parse` and `Pipeline.run` raise."""
    return Pipeline.parse(text, op.operation.name).run(op, verify=verify)


def run_pass(op: Any, instance: Any) -> tuple[Diagnostic, ...]:
    """Run one pass of ours that the caller made: its options may hold any text, braces and quotes too."""
    pipeline = Pipeline((), op.operation.name)
    pipeline._steps = (_Ours(Element(instance.name), instance),)
    return pipeline.run(op)


def _elements(steps: tuple[_Step, ...]) -> tuple[Element, ...]:
    out: list[Element] = []
    for step in steps:
        if isinstance(step, _Native):
            out += step.elements
        elif isinstance(step, _Ours):
            out.append(step.element)
        else:
            out.append(Element(step.element.name, None, _elements(step.steps), step.element.offset))
    return tuple(out)


def _has_ours(element: Element) -> bool:
    if element.children is not None:
        return any(_has_ours(c) for c in element.children)
    return registry.known(element.name)


def _children(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            for child in block.operations:
                yield child.operation


def _singles(element: Element) -> Iterator[tuple[Element, Element]]:
    """(nest around one pass, that pass) for every pass in a native nest, in order."""
    for child in element.children or ():
        if child.children is None:
            yield Element(element.name, None, (child,), child.offset), child
        else:
            for inner, leaf in _singles(child):
                yield Element(element.name, None, (inner,), leaf.offset), leaf


def _at_offset(element: Element, function: Any, text: str) -> Any:
    """Call `function(text)`; a PipelineError gets the offset of the element."""
    try:
        return function(text)
    except PipelineError as error:
        raise pipeline_error(str(error), element.offset) from error


def _wrong_anchor(kind: str, element: Element, wanted: str | None, anchor: str) -> PipelineError:
    text = f"{kind} '{element.name}' runs on '{wanted}', not on '{anchor}': nest it in '{wanted}(...)'"
    if wanted == MODULE:
        text = f"{kind} '{element.name}' runs on '{wanted}', not on '{anchor}'"
    return pipeline_error(text, element.offset)


def _first_line(message: str) -> str:
    return next((line for line in message.splitlines() if line.strip()), "no reason given")


@lru_cache(maxsize=1)
def _checking_context() -> Any:
    """Parsing pipelines needs a context but no module: one serves them all."""
    from mlir import ir

    context = ir.Context()
    context.enable_multithreading(False)
    return context


def _load_dialect(op: Any) -> None:
    """Make the morello dialect known before passes of ours build its ops. Raises PipelineError where it is too late."""
    from morello_mlir import dialect

    if dialect.loaded(op.context):
        return
    if next(dialect.spec_ops(op), None) is not None:
        raise PipelineError("the module was parsed before the morello dialect was loaded (morello_mlir.dialect.load)")
    dialect.load(op.context)


def _mlir_error() -> type[Exception]:
    from mlir import ir

    return ir.MLIRError
