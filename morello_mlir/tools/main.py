"""`morello`: explain schedules and measure them. Each subcommand is a module, imported when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from . import _cli

TOOL = "morello"

#: name -> (module, one line of help). A module has `add_arguments(parser)` and `run(options) -> exit status`.
COMMANDS = {
    "explain": ("morello_mlir.tools.explain", "show the chosen schedule with costs and traffic per step"),
    "memo": ("morello_mlir.tools.memo", "look into memos, verify, merge, export, import, pack"),
    "precompute": ("morello_mlir.tools.precompute", "fill the memo for a family of goals, in parallel"),
    "calibrate": ("morello_mlir.tools.calibrate", "measure this machine and fit the cost model to it"),
    "bench": ("morello_mlir.tools.bench", "time contractions beside numpy's BLAS"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """The console script. Returns the exit status (0; 1 bad program, or no command: its help is printed, as git does;
    2 unusable input or usage; 130 interrupted)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return _cli.run_tool(TOOL, lambda: _main(arguments))


def _main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=TOOL, description="Optimal schedules for linear algebra on CPUs.")
    parser.add_argument("--version", action="version", version=_cli.version_line(TOOL))
    parser.set_defaults(help_text=parser.format_help)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    asked = next((a for a in arguments if not a.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == asked:
            importlib.import_module(module).add_arguments(sub)
    options = parser.parse_args(arguments)
    if None in (options.command, getattr(options, "action", "")):
        _cli.write_text(None, options.help_text())
        return 1
    return importlib.import_module(COMMANDS[options.command][0]).run(options)


if __name__ == "__main__":
    sys.exit(main())
