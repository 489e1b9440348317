"""`morello-opt --list-passes`: every pass and named pipeline of ours with its options."""

from __future__ import annotations

import textwrap

from morello_mlir.errors import PipelineError
from morello_mlir.passes import registry
from morello_mlir.passes.base import describe_type, format_value


def passes_text() -> str:
    """The list. One that cannot be loaded is listed with the reason."""
    passes: list[str] = []
    pipelines: list[str] = []
    for name in registry.names():
        try:
            item = registry.lookup(name)
        except PipelineError as error:
            passes += [f"  {name}", f"      (not available: {error})"]
            continue
        kind = pipelines if isinstance(item, registry.NamedPipeline) else passes
        kind += _entry(name, item)
    return "\n".join(
        [
            "passes:",
            *passes,
            "",
            "pipelines (names that stand for several passes):",
            *pipelines,
            "",
            "Every pass of mlir-opt can be used as well: mlir-opt --help lists them.",
            "",
        ]
    )


def _entry(name: str, item: type[registry.Pass] | registry.NamedPipeline) -> list[str]:
    anchor = item.anchor or "any op"
    lines = [
        f"  {name}  (on {anchor})",
        *textwrap.wrap(item.summary, 110, initial_indent="      ", subsequent_indent="      "),
    ]
    for spelling, option in registry.options_of(item).items():
        default = format_value(option.default) if option.default != "" else '""'
        default = default or "none"
        text = f"{describe_type(option.type)}, default {default}"
        lines.append(f"      {spelling}: {text}" + (f"; {option.help}" if option.help else ""))
    return lines
