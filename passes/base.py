"""What a pass is: a frozen dataclass whose fields are its options.

    @dataclass(frozen=True)
    class CountOps(Pass):
        \"\"\"Report how many ops of one name a module holds.\"\"\"

        name: ClassVar[str] = "count-ops"
        summary: ClassVar[str] = "Report the number of ops of a name"
        op_name: str = option("linalg.matmul", help="the ops to count")

        def run(self, op):
            remark(op, f"...")

The field `op_name` is the option `op-name` in pipeline text: `count-ops{op-name=linalg.fill}`. Option types: `bool`,
`int`, `float`, `str`, `Literal[...]` of strings, `tuple` of ints or strings (`sizes=6,16,32`), any of them `| None`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from morello_mlir import diagnostics
from morello_mlir.diagnostics import Diagnostic
from morello_mlir.errors import PassError, PipelineError


def option(default: Any, *, help: str = "") -> Any:
    """A field of a pass: its default value, and the line that `--list-passes` prints for it."""
    return dataclasses.field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Pass:
    """The base of every pass. Subclasses are frozen dataclasses, set the class variables and define `run`.

    name:    how pipelines call it.
    summary: one line for `--list-passes`.
    anchor:  the op it runs on (`builtin.module`, `func.func`, ...), or None for any op.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    anchor: ClassVar[str | None] = "builtin.module"

    def run(self, op: Any) -> None:
        """Rewrite `op`, an `mlir.ir.Operation`, in place. The context is current; failing is raising `PassError`."""
        raise NotImplementedError(f"pass '{self.name}' does not define run()")

    def fail(self, op: Any, message: str, *notes: tuple[Any, str]) -> NoReturn:
        """End the pass with an error at `op`; `notes` are (op, text) pairs. Raises PassError."""
        attached = tuple(Diagnostic(diagnostics.NOTE, text, place(at)) for at, text in notes)
        diagnostic = Diagnostic(diagnostics.ERROR, f"'{op.operation.name}' op {message}", place(op), attached)
        # Whoever runs pipelines collects diagnostics; a pass called by hand has only the exception.
        if diagnostics.collecting():
            diagnostics.add(diagnostic)
        raise PassError(str(diagnostic), (str(diagnostic),))

    @classmethod
    def from_options(cls, options: str = "") -> Pass:
        """Make the pass from option text, `a=1 b=x`. Raises PipelineError naming the pass and the option at fault."""
        return cls(**parse_options(f"pass '{cls.name}'", options, option_table(cls)))

    def __str__(self) -> str:
        """The pass as a pipeline element, with the options that differ from their defaults."""
        changed = [
            f"{spelling}={format_value(getattr(self, o.field))}"
            for spelling, o in option_table(type(self)).items()
            if getattr(self, o.field) != o.default
        ]
        return self.name + ("{" + " ".join(changed) + "}" if changed else "")


def place(op: Any) -> diagnostics.Place:
    """The source position of an op."""
    return diagnostics.place_of(op.operation.location)


def emit_error(op: Any, message: str, notes: tuple[Diagnostic, ...] = ()) -> None:
    """Report an error at `op` and go on: the pass counts as failed once it returns. Use it to report several."""
    diagnostics.emit(diagnostics.ERROR, f"'{op.operation.name}' op {message}", op.operation.location, notes)


def warn(op: Any, message: str) -> None:
    """Report a warning at `op`."""
    diagnostics.emit(diagnostics.WARNING, message, op.operation.location)


def remark(op: Any, message: str) -> None:
    """Report a remark at `op`; the tools show remarks on request only (`--remarks`)."""
    diagnostics.emit(diagnostics.REMARK, message, op.operation.location)


# ---- options -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option of a pass or named pipeline: the field it fills, its type, default and help line."""

    field: str
    type: Any
    default: Any
    help: str = ""


def option_table(cls: type) -> dict[str, Option]:
    """The options of a pass class by their spelling in pipeline text."""
    hints = typing.get_type_hints(cls)
    return {
        f.name.replace("_", "-"): Option(f.name, hints[f.name], f.default, f.metadata.get("help", ""))
        for f in dataclasses.fields(cls)
    }


def split_options(text: str) -> list[tuple[str, str]]:
    """`a=1 b={x y} c` as [("a","1"), ("b","x y"), ("c","true")]; braces and quotes protect spaces.

    Raises PipelineError where brackets or quotes do not balance.
    """
    words: list[str] = []
    word, depth, quote = "", 0, ""
    for char in text + " ":
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
        if char.isspace() and not quote and depth == 0:
            if word:
                words.append(word)
            word = ""
        else:
            word += char
    if quote or depth:
        raise PipelineError(f"unbalanced brackets or quotes in options '{text}'")
    pairs = []
    for item in words:
        key, equals, value = item.partition("=")
        if len(value) >= 2 and (value[0], value[-1]) in (("{", "}"), ('"', '"'), ("'", "'")):
            value = value[1:-1]
        pairs.append((key, value if equals else "true"))
    return pairs


def parse_options(owner: str, text: str, table: dict[str, Option]) -> dict[str, Any]:
    """Option text as keyword arguments. Raises PipelineError, naming `owner`: unknown, repeated, malformed."""
    values: dict[str, Any] = {}
    for key, raw in split_options(text):
        if key not in table:
            known = ", ".join(table) if table else "it takes none"
            raise PipelineError(f"{owner} has no option '{key}' (options: {known})")
        entry = table[key]
        if entry.field in values:
            raise PipelineError(f"{owner}: option '{key}' is given twice")
        try:
            values[entry.field] = _convert(raw, entry.type)
        except ValueError:
            raise PipelineError(f"{owner}: option '{key}': '{raw}' is not {describe_type(entry.type)}") from None
    return values


_NOUNS = {bool: "a bool (true or false)", int: "an integer", float: "a number", str: "a string"}
_PLURALS = {int: "a list of integers", str: "a list of strings", float: "a list of numbers"}


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(a for a in typing.get_args(kind) if a is not type(None))
    return kind


def describe_type(kind: Any) -> str:
    """An option's type in words, as error messages and `--list-passes` say it."""
    kind = _without_none(kind)
    if typing.get_origin(kind) is typing.Literal:
        return "one of " + ", ".join(typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return _PLURALS[typing.get_args(kind)[0]]
    return _NOUNS[kind]


def _convert(raw: str, kind: Any) -> Any:
    """Option text to a value. Raises ValueError."""
    optional = _without_none(kind) is not kind
    kind = _without_none(kind)
    if optional and raw == "none":
        return None
    if typing.get_origin(kind) is typing.Literal:
        if raw not in typing.get_args(kind):
            raise ValueError(raw)
        return raw
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        return tuple(_convert(item.strip(), element) for item in raw.split(",")) if raw.strip() else ()
    if kind is bool:
        if raw not in _BOOLS:
            raise ValueError(raw)
        return _BOOLS[raw]
    return kind(raw)


_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def format_value(value: Any) -> str:
    """A value as option text: what `parse_options` reads back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(format_value(v) for v in value)
    text = str(value)
    return "{" + text + "}" if not text or any(c in " \t{}()[],'\"" for c in text) else text
