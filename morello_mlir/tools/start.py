"""The console scripts. Nothing is imported before ^C ends a tool without a traceback: a user may be that quick."""

from importlib import import_module

#: As `_cli.INTERRUPTED`.
_INTERRUPTED = 130


def morello() -> int:
    return _start("main")


def opt() -> int:
    return _start("opt")


def run() -> int:
    return _start("run")


def _start(tool: str) -> int:
    """Runs the tool of that module; returns its exit status."""
    try:
        status: int = import_module(f"morello_mlir.tools.{tool}").main()
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status
