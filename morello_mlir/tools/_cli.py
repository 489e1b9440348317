"""What the command lines share: reading and writing files, exit codes, and running work that may crash in a child.

Imports no MLIR: a tool that only prints its help must start at once.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import NoReturn

from morello_mlir.diagnostics import ERROR, Diagnostic, Place
from morello_mlir.errors import InputError, MorelloError

INTERRUPTED = 130
_NOTE_BYTES = 1024
# How MLIR bytecode begins.
_BYTECODE = b"ML\xefR"
# What ends the parent is handed on to the child.
_FORWARDED = (signal.SIGINT, signal.SIGTERM)


def version_line(tool: str) -> str:
    """`morello-opt 0.1.0 (MLIR 22.1.8.4)`, without loading MLIR."""

    def installed(distribution: str) -> str:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return "unknown"

    return f"{tool} {installed('morello-mlir')} (MLIR {installed('xtc-mlir-python-bindings')})"


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of stdin for `-`. Raises InputError, as a diagnostic at the file."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(located(path, 0, 0, f"cannot open input file: {error.strerror}")) from error


def read_text(path: str) -> str:
    """The text of a file, or of stdin for `-`. Raises InputError, as a diagnostic at the file and line."""
    return _decoded(path, read_bytes(path))


def read_module(path: str) -> str | bytes:
    """An MLIR file, or stdin for `-`: its text, or its bytes where it is bytecode. Raises InputError as `read_text`."""
    data = read_bytes(path)
    return data if data.startswith(_BYTECODE) else _decoded(path, data)


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        message = f"not UTF-8 text (byte 0x{data[error.start]:02x})"
        raise InputError(located(path, line, column, message)) from error


def write_text(path: str | None, text: str) -> None:
    """As `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: str | None, data: bytes) -> None:
    """Write to a file (whole or not at all), or to stdout for None and `-`. Raises InputError."""
    if path is None or path == "-":
        print_out(data)
        return
    # The file behind a symbolic link is replaced, not the link.
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe (/dev/null) is written to, never replaced.
            target.write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(prefix=target.name[:32], dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            # mkstemp makes private files; a compiler's output has the usual permissions.
            mask = os.umask(0)
            os.umask(mask)
            Path(temporary).chmod(0o666 & ~mask)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(located(path, 0, 0, f"cannot write output file: {error.strerror}")) from error


def refuse_terminal(what: str, path: str | None) -> None:
    """Raises InputError where output that is no text, `what`, would go to a terminal that nobody named by `-`."""
    if path is None and sys.stdout is not None and sys.stdout.isatty():
        raise InputError(f"{what} is nothing for a terminal: name a file with -o")


def print_out(data: bytes) -> None:
    """Write to stdout, now, and all that waits for it. Raises InputError (a full disk), BrokenPipeError."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        raise InputError(f"cannot write to the standard output: {error.strerror}") from error


def _discard_stdout() -> None:
    """Send what is still buffered for stdout, and what follows, nowhere: it cannot be written, and Python would
    complain about it again at every flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_streams() -> None:
    """Connect standard streams that were closed before we started (`tool >&-`) to the null device. The next file that
    something opens would get their numbers otherwise, and receive what libraries print."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def display_name(path: str) -> str:
    """How diagnostics call an input."""
    # File names are bytes to the system; what is not text in one must not stop the message about it.
    return "<stdin>" if path == "-" else os.fsencode(path).decode("utf-8", errors="backslashreplace")


def located(path: str, line: int, column: int, message: str) -> str:
    """An MLIR-style error line."""
    return str(Diagnostic(ERROR, message, Place(display_name(path), line, column)))


def run_tool(tool: str, work: Callable[[], int], *, input_error: int = InputError.exit_code) -> int:
    """Run a tool's work and turn what can go wrong into a message and an exit status.

    input_error: the status for unusable input (`morello-opt` has 1 where others have 2).
    """
    open_standard_streams()
    try:
        status = work()
        print_out(b"")
        return status
    except InputError as error:
        say(tool, str(error))
        return input_error
    except MorelloError as error:
        say(tool, str(error))
        return error.exit_code
    except MemoryError:
        say(tool, "out of memory")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`).
        _discard_stdout()
        return 0
    except OSError as error:
        # A full disk, most likely; files that we were asked to read or write have messages of their own.
        if os.environ.get("MORELLO_STRICT"):
            raise
        _discard_stdout()
        say(tool, str(error))
        return input_error
    except Exception as error:
        # A bug of ours. It must be seen, where the details do not say more than they help.
        if os.environ.get("MORELLO_STRICT"):
            raise
        say(tool, f"internal error: {type(error).__name__}: {error}")
        print(f"{tool}: note: set MORELLO_STRICT=1 for the details", file=sys.stderr)
        return 1


def say(tool: str, message: str) -> None:
    """Print an error to stderr; one without a location gets the tool's name in its place."""
    print(message if ": error: " in message else f"{tool}: error: {message}", file=sys.stderr)


class Notebook:
    """Memory shared with the child: where it notes what it is doing, for the parent to read should it crash."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NOTE_BYTES)

    def note(self, text: str) -> None:
        data = text.encode("utf-8", errors="replace")[: _NOTE_BYTES - 1]
        self._memory[: len(data) + 1] = data + b"\0"

    def read(self) -> str:
        return self._memory[:].split(b"\0", 1)[0].decode("utf-8", errors="replace")


def isolated(
    tool: str,
    path: str,
    work: Callable[[Notebook], int],
    *,
    input_error: int = InputError.exit_code,
) -> int:
    """Run `work` in a forked child, so that an abort or a segmentation fault in native code becomes a diagnostic.

    Call it before anything starts threads (before MLIR is loaded, that is). `path`: the input, for the diagnostic.
    Returns the child's status, which is that of `run_tool`; 1 where it was killed by a signal, 130 where it was
    interrupted.
    """
    open_standard_streams()
    notebook = Notebook()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal that arrives before both sides are ready for it has to wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _run_child(tool, work, notebook, input_error, parent)
    return _await_child(child, path, notebook)


def _run_child(
    tool: str, work: Callable[[Notebook], int], notebook: Notebook, input_error: int, parent: int
) -> NoReturn:
    status = 1
    try:
        # Native code does not look at Python's signal flag: the default action ends it at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        _die_with_parent(parent)
        _no_core_dump()
        status = run_tool(tool, lambda: work(notebook), input_error=input_error)
        sys.stdout.flush()
        sys.stderr.flush()
        _keep_memos()
    except BrokenPipeError:
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        # A bug of ours. It must be seen, and must not continue in the parent's frames.
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _keep_memos() -> None:
    """Has what was searched for written, where anything was: the process ends without Python's leave."""
    solve = sys.modules.get("morello_mlir.search.solve")
    if solve is not None:
        solve.keep_memos()


def _await_child(child: int, path: str, notebook: Notebook) -> int:
    def forward(number: int, frame: FrameType | None) -> None:
        # It may have ended, and been waited for, a moment ago.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    previous = {s: signal.signal(s, forward) for s in _FORWARDED}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    try:
        _, wait_status = os.waitpid(child, 0)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return code
    if -code == signal.SIGINT:
        return INTERRUPTED
    if -code == signal.SIGTERM:
        return 128 + signal.SIGTERM
    name = signal.Signals(-code).name
    doing = notebook.read()
    print(located(path, 0, 0, f"{doing or 'the compiler'} crashed ({name})"), file=sys.stderr)
    return 1


def _die_with_parent(parent: int) -> None:
    """Have the kernel end this child when its parent is killed, rather than leave it computing for nobody."""
    if sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
    if os.getppid() != parent:
        # It was killed before we asked.
        os._exit(128 + signal.SIGKILL)


def _no_core_dump() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
