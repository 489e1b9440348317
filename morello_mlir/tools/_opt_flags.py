"""The command line of `morello-opt`: its own flags, and a flag for every pass, in the order they are given."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass, field
from typing import Any

from morello_mlir.errors import InputError


def _flag(default: Any, help: str, spelling: str = "") -> Any:
    return field(default=default, metadata={"help": help, "spelling": spelling})


@dataclass
class OptFlags:
    """What the command line says. The fields with help are its flags, spelled with dashes."""

    input: str = "-"
    # The pipeline as text, and whether it comes from individual pass flags.
    pipeline: str = ""
    from_flags: bool = False
    output: str | None = _flag(None, "where the result goes (default: stdout)", "o")
    pass_pipeline: str | None = _flag(None, "the passes to run, as 'builtin.module(...)' text")
    split_input_file: bool = _flag(False, "treat the parts of the input between '// -----' lines as separate modules")
    verify_diagnostics: bool = _flag(False, "check the diagnostics against 'expected-error {{...}}' comments")
    verify_each: bool = _flag(True, "verify the IR after every pass")
    remarks: bool = _flag(False, "print remarks, such as why an op was not lifted")
    allow_unregistered_dialect: bool = _flag(False, "accept ops of unknown dialects")
    mlir_print_ir_after_all: bool = _flag(False, "print the IR after every pass, to stderr")
    mlir_print_op_generic: bool = _flag(False, "print ops in generic form")
    mlir_print_debuginfo: bool = _flag(False, "print locations")
    mlir_print_local_scope: bool = _flag(False, "print types and attributes inline, without aliases")
    emit_bytecode: bool = _flag(False, "write bytecode instead of text")
    mlir_timing: bool = _flag(False, "report the time that each pass took, to stderr")
    mlir_disable_threading: bool = _flag(False, "run one thread only")
    dump_pass_pipeline: bool = _flag(False, "print the pipeline that will be run, to stderr")
    in_process: bool = _flag(False, "do not isolate the work in a child process (for debuggers)")
    list_passes: bool = _flag(False, "list our passes and pipelines with their options, and exit")
    version: bool = _flag(False, "print the version, and exit")
    help: bool = _flag(False, "print this, and exit")


def _table() -> dict[str, tuple[str, bool, str]]:
    """Spelling -> (field, is a bool, help)."""
    out = {}
    for name, spec in OptFlags.__dataclass_fields__.items():
        if "help" in spec.metadata:
            spelling = spec.metadata["spelling"] or name.replace("_", "-")
            out[spelling] = (name, isinstance(spec.default, bool), spec.metadata["help"])
    return out


def parse_flags(arguments: list[str]) -> OptFlags:
    """Read a command line. Flags may have one dash or two. Raises InputError."""
    flags = OptFlags()
    table = _table()
    inputs: list[str] = []
    passes: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            inputs += rest
            break
        if word == "-" or not word.startswith("-"):
            inputs.append(word)
            continue
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if name == "h":
            name = "help"
        if name not in table:
            passes.append(_pass_element(word, name, value if equals else None))
            continue
        attribute, is_bool, _ = table[name]
        if is_bool:
            setattr(flags, attribute, _parse_bool(name, value) if equals else True)
            continue
        if not equals:
            if not rest:
                raise InputError(f"option '{word}' needs a value")
            value = rest.pop(0)
        if getattr(flags, attribute) is not None:
            raise InputError(f"option '{word}' is given twice")
        setattr(flags, attribute, value)
    if len(inputs) > 1:
        raise InputError(f"one input file is expected, not {len(inputs)}: {' '.join(inputs)}")
    if flags.pass_pipeline is not None and passes:
        raise InputError("'--pass-pipeline' cannot be combined with flags of single passes (--" + passes[0] + ")")
    flags.input = inputs[0] if inputs else "-"
    flags.from_flags = bool(passes)
    flags.pipeline = ",".join(passes) if passes else flags.pass_pipeline or ""
    return flags


def _parse_bool(name: str, value: str) -> bool:
    if value.lower() in ("true", "1"):
        return True
    if value.lower() in ("false", "0"):
        return False
    raise InputError(f"option '--{name}': '{value}' is not true or false")


def _pass_element(word: str, name: str, options: str | None) -> str:
    """The pipeline element for a flag. Whether the pass exists is found out with the pipeline."""
    if not name or not all(c.isalnum() or c in "-_." for c in name):
        raise InputError(f"unknown option '{word}'")
    return name if options is None else f"{name}{{{options}}}"


def suggestion(name: str) -> str:
    """`; did you mean '--x'?` for a flag that is neither ours nor a pass, or nothing."""
    from morello_mlir.passes import registry

    close = difflib.get_close_matches(name, [*_table(), *registry.names()], n=1)
    return f"; did you mean '--{close[0]}'?" if close else ""


def help_text() -> str:
    """The text of `--help`."""
    lines = [
        "usage: morello-opt [flags] [FILE]",
        "",
        "Run passes on an MLIR file or an ONNX model (default: stdin) and print the result. Passes are given by",
        "--pass-pipeline, or by one flag each, in order: --canonicalize --morello-lift --some-pass='a=1 b=2'. Every",
        "pass of mlir-opt is known, and ours (see --list-passes).",
        "",
        "flags:",
    ]
    for spelling, (_, is_bool, text) in _table().items():
        shown = ("-" if len(spelling) == 1 else "--") + spelling + ("" if is_bool else " VALUE")
        if spelling == "verify-each":
            shown += "[=false]"
        wrapped = textwrap.wrap(text, 84)
        lines.append(f"  {shown:<30} {wrapped[0]}")
        lines += [" " * 33 + more for more in wrapped[1:]]
    lines += [
        "",
        "exit status: 0, or 1 where the input is unusable, a pass fails, or diagnostics are not as expected;",
        "130 when interrupted.",
    ]
    return "\n".join(lines) + "\n"
