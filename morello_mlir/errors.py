"""The exceptions of the package. A tool maps them to a message and an exit status; none is a bug report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .diagnostics import Diagnostic


class MorelloError(Exception):
    """Anything the user can do something about. `str(e)` is the whole message.

    exit_code: what a command line tool exits with (1 bad program, 2 unusable input).
    """

    exit_code = 1


class InputError(MorelloError):
    """Unusable input: a missing file, a malformed archive, arrays that do not fit the signature."""

    exit_code = 2


class CompileError(MorelloError):
    """The program does not compile. `diagnostics` holds MLIR-style lines `file:line:col: error: ...`."""

    def __init__(self, message: str, diagnostics: tuple[str, ...] = ()):
        super().__init__(message)
        self.diagnostics = diagnostics


class PipelineError(CompileError):
    """Pipeline text that does not parse: an unknown pass or option, unbalanced brackets.

    reason, offset: the message without the place, and the place in the text, where there is one.
    """

    def __init__(self, message: str, *, reason: str | None = None, offset: int | None = None):
        super().__init__(message)
        self.reason = reason or message
        self.offset = offset


class PassError(CompileError):
    """A pass failed; the message carries the location of the op at fault.

    pass_name: the pass, where it is known. reported: all that was reported up to the failure, as
    `morello_mlir.diagnostics.Diagnostic` values (warnings and remarks included).
    """

    def __init__(
        self,
        message: str,
        diagnostics: tuple[str, ...] = (),
        *,
        pass_name: str = "",
        reported: tuple[Diagnostic, ...] = (),
    ):
        super().__init__(message, diagnostics)
        self.pass_name = pass_name
        self.reported = reported


class SpecError(MorelloError):
    """A Spec, tensor spec or layout that is malformed (text or value)."""


class ScheduleError(MorelloError):
    """A schedule that does not parse or is not legal. The message names the step and the reason.

    offset: where in the line of the step the fault is, if that is known.
    """

    def __init__(self, message: str, offset: int = 0):
        super().__init__(message)
        self.offset = offset


#: How much of a line messages quote.
_QUOTED = 80


def excerpt(text: str, offset: int = 0) -> str:
    """`text`, or where it is long the part around `offset`, with dots for what is left out."""
    if len(text) <= _QUOTED:
        return text
    begin = max(0, min(offset - _QUOTED // 4, len(text) - _QUOTED))
    end = begin + _QUOTED
    return "..." * (begin > 0) + text[begin:end] + "..." * (end < len(text))


def first_line(error: BaseException) -> str:
    """The first line of what an exception of another library says; its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
