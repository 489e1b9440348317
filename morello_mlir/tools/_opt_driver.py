"""The work of `morello-opt`, in the process where MLIR is loaded."""

from __future__ import annotations

import io
import re
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from mlir import ir

from morello_mlir import diagnostics, dialect
from morello_mlir.diagnostics import ERROR, REMARK, Diagnostic, Place
from morello_mlir.errors import CompileError, PassError, PipelineError
from morello_mlir.passes.instrument import Instrument, PrintAfterAll, Progress, Timing
from morello_mlir.passes.pipeline import MODULE, Pipeline
from morello_mlir.passes.pipeline_text import parse_text
from morello_mlir.tools import _cli
from morello_mlir.tools._expectations import expectations, mismatches
from morello_mlir.tools._opt_flags import OptFlags, suggestion

SPLIT_MARKER = "// -----"
# What MLIR calls a text that was given to it without a file name.
_UNNAMED = "-"


@dataclass(frozen=True)
class Chunk:
    """A part of the input: bytecode, or text that starts with empty lines, so that its line numbers are the file's."""

    code: str | bytes

    @property
    def text(self) -> str:
        """What can hold comments: nothing in bytecode."""
        return self.code if isinstance(self.code, str) else ""


def split_chunks(text: str) -> list[Chunk]:
    """The parts of a text between lines that start with `// -----`."""
    chunks: list[Chunk] = []
    current: list[str] = []
    start = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith(SPLIT_MARKER):
            chunks.append(Chunk("\n" * start + "\n".join(current)))
            current, start = [], number + 1
        else:
            current.append(line)
    chunks.append(Chunk("\n" * start + "\n".join(current)))
    return chunks


class OptDriver:
    """Runs one command line."""

    def __init__(self, flags: OptFlags, notebook: _cli.Notebook):
        self.flags = flags
        self.notebook = notebook
        self.name = _cli.display_name(flags.input)
        self.source: list[str] = []
        self.timing = Timing() if flags.mlir_timing else None

    def run(self, source: str | bytes) -> int:
        """Process the input; returns the exit status. Raises CompileError, and InputError from writing."""
        self.source = source.split("\n") if isinstance(source, str) else []
        pipeline = self._pipeline()
        if self.flags.dump_pass_pipeline:
            print(f"Pass Manager with {len(pipeline.elements)} passes:\n{pipeline}", file=sys.stderr)
        if self.flags.split_input_file and isinstance(source, str):
            chunks = split_chunks(source)
        else:
            chunks = [Chunk(source)]
        outputs = []
        good = True
        for chunk in chunks:
            output, fine = self._process(chunk, pipeline)
            good &= fine
            if output is not None:
                outputs.append(output)
        # As mlir-opt: without a split, a failure leaves no output; with it, the good parts are printed.
        if outputs:
            _cli.write_bytes(self.flags.output, f"{SPLIT_MARKER}\n".encode().join(outputs))
        if self.timing:
            sys.stderr.write(self.timing.report())
        return 0 if good else 1

    # ---- the pipeline ---------------------------------------------------------------------------------------------

    def _pipeline(self) -> Pipeline:
        self.notebook.note("the pipeline parser")
        text = self.flags.pipeline
        try:
            elements = parse_text(text)
            if self.flags.from_flags:
                return Pipeline(elements, MODULE, implicit_nesting=True)
            if not elements:
                return Pipeline(())
            if len(elements) != 1 or elements[0].name != MODULE or elements[0].children is None:
                raise PipelineError(
                    f"the pipeline must be of the form '{MODULE}(...)'", reason=f"expected '{MODULE}(...)'", offset=0
                )
            return Pipeline(elements[0].children)
        except PipelineError as error:
            raise CompileError(self._explain(error, text)) from error

    def _explain(self, error: PipelineError, text: str) -> str:
        if error.offset is None:
            return str(error)
        unknown = re.fullmatch(r"unknown pass '(.*)'", error.reason)
        if self.flags.from_flags and unknown:
            return f"morello-opt: error: unknown option or pass '--{unknown[1]}'{suggestion(unknown[1])}"
        place = Place("<pass-pipeline>", 1, error.offset + 1)
        return f"{Diagnostic(ERROR, error.reason, place)}\n{text}\n{' ' * error.offset}^"

    # ---- a module -------------------------------------------------------------------------------------------------

    def _process(self, chunk: Chunk, pipeline: Pipeline) -> tuple[bytes | None, bool]:
        """(the result or None, whether all went as it should) for one chunk."""
        context = ir.Context()
        context.allow_unregistered_dialects = self.flags.allow_unregistered_dialect
        if self.flags.mlir_disable_threading or self.flags.mlir_print_ir_after_all:
            context.enable_multithreading(False)
        dialect.load(context)
        reported, output = self._compile(context, chunk, pipeline)
        reported = [self._renamed(d) for d in reported]
        if self.flags.verify_diagnostics:
            wrong = mismatches(expectations(chunk.text, self.name), reported)
            for diagnostic in wrong:
                self._show(diagnostic)
            return output, not wrong
        for diagnostic in reported:
            if diagnostic.severity != REMARK or self.flags.remarks:
                self._show(diagnostic)
        return output, output is not None

    def _compile(self, context: ir.Context, chunk: Chunk, pipeline: Pipeline) -> tuple[list[Diagnostic], bytes | None]:
        """(all that was reported, the result or None where something failed)."""
        with context, diagnostics.capture(context) as sink:
            self.notebook.note("the parser")
            try:
                with self._phase("Parser"):
                    module = ir.Module.parse(chunk.code, context)
            except ir.MLIRError as error:
                if not sink.errors:
                    diagnostics.emit(ERROR, str(error))
                return sink.diagnostics, None
            if not dialect.verify_specs(module):
                return sink.diagnostics, None
            try:
                reported = pipeline.run(module, verify=self.flags.verify_each, instruments=self._instruments())
            except PassError as error:
                return [*sink.diagnostics, *error.reported], None
            reported = (*sink.diagnostics, *reported)
            self.notebook.note("the printer")
            with self._phase("Output"):
                output = self._bytecode(module) if self.flags.emit_bytecode else self._print(module).encode()
        return list(reported), output

    def _instruments(self) -> tuple[Instrument, ...]:
        flags = self.flags
        instruments: list[Instrument] = [Progress(lambda name: self.notebook.note(f"pass '{name}'" if name else ""))]
        if self.timing:
            instruments.append(self.timing)
        if flags.mlir_print_ir_after_all:
            instruments.append(
                PrintAfterAll(generic=flags.mlir_print_op_generic, debug_info=flags.mlir_print_debuginfo)
            )
        return tuple(instruments)

    def _print(self, module: ir.Module) -> str:
        text = module.operation.get_asm(
            print_generic_op_form=self.flags.mlir_print_op_generic,
            enable_debug_info=self.flags.mlir_print_debuginfo,
            use_local_scope=self.flags.mlir_print_local_scope,
        )
        if self.flags.mlir_print_debuginfo:
            text = self._with_name(text)
        return text if text.endswith("\n") else text + "\n"

    def _bytecode(self, module: ir.Module) -> bytes:
        """It has all locations; those of bytecode that was read name their files already."""
        if self.source:
            text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
            module = ir.Module.parse(self._with_name(text))
        written = io.BytesIO()
        module.operation.write_bytecode(written)
        return written.getvalue()

    def _with_name(self, text: str) -> str:
        """A module as text with the name of the input in place of MLIR's name for an unnamed text."""
        # A quote inside an MLIR string is escaped: this can only be the file name of a location.
        name = self.name.replace("\\", "\\\\").replace('"', "\\22")
        return text.replace(f'"{_UNNAMED}":', f'"{name}":')

    def _phase(self, name: str) -> Any:
        return self.timing.phase(name) if self.timing else nullcontext()

    # ---- diagnostics ----------------------------------------------------------------------------------------------

    def _renamed(self, diagnostic: Diagnostic) -> Diagnostic:
        """The diagnostic with the name of the input in place of MLIR's name for an unnamed text."""
        place = diagnostic.place
        if place.file == _UNNAMED:
            place = replace(place, file=self.name)
        return replace(diagnostic, place=place, notes=tuple(self._renamed(n) for n in diagnostic.notes))

    def _show(self, diagnostic: Diagnostic) -> None:
        """Print with the source line and a caret under the column."""
        print(replace(diagnostic, notes=()), file=sys.stderr)
        place = diagnostic.place
        if place.file == self.name and 0 < place.line <= len(self.source):
            line = self.source[place.line - 1]
            indent = "".join("\t" if c == "\t" else " " for c in line[: max(place.column - 1, 0)])
            print(f"{line}\n{indent}^", file=sys.stderr)
        for note in diagnostic.notes:
            self._show(note)
