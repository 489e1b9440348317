"""`morello-opt`: run passes on MLIR files, ours and upstream's in one pipeline, with the habits of mlir-opt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from morello_mlir.tools import _cli, _input
from morello_mlir.tools._opt_flags import OptFlags, parse_flags

TOOL = "morello-opt"


def main(argv: Sequence[str] | None = None) -> int:
    """The console script. Returns the exit status: 0, 1 for whatever is wrong with the input, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return _cli.run_tool(TOOL, lambda: _main(arguments), input_error=1)


def _main(arguments: list[str]) -> int:
    flags = parse_flags(arguments)
    if flags.help:
        from morello_mlir.tools._opt_flags import help_text

        _cli.write_text(None, help_text())
        return 0
    if flags.version:
        _cli.write_text(None, _cli.version_line(TOOL) + "\n")
        return 0
    if flags.list_passes:
        from morello_mlir.tools._list_passes import passes_text

        _cli.write_text(None, passes_text())
        return 0
    if flags.emit_bytecode:
        _cli.refuse_terminal("bytecode", flags.output)
    if flags.in_process:
        return _process(flags, _cli.Notebook())
    return _cli.isolated(TOOL, flags.input, lambda notebook: _process(flags, notebook), input_error=1)


def _process(flags: OptFlags, notebook: _cli.Notebook) -> int:
    # Everything that loads MLIR happens here, in the child.
    notebook.note("loading the input")
    source = _input.read(flags.input)
    notebook.note("loading MLIR")
    from morello_mlir.tools._opt_driver import OptDriver

    return OptDriver(flags, notebook).run(source)


if __name__ == "__main__":
    sys.exit(main())
