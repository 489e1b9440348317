"""`morello explain`: the schedules of a module's contractions, or of a Spec given as text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from ..errors import InputError
from ..search.explain import explain, steps, traffic
from ..search.schedule import has_hole, parse, to_text
from ..search.solve import Solution, search_for
from ..spec import Spec
from ..targets import Target, get_target
from . import _cli


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", metavar="FILE|SPEC", help="an MLIR file (- for stdin), or a Spec such as 'Matmul([...], ...)'"
    )
    parser.add_argument("--target", default="host", help="the machine: host, avx2, avx512 (default: host)")
    parser.add_argument("--schedule", metavar="FILE", help="explain this schedule of the Spec, its holes filled")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT",
                        help="cut branches that cost less than this share (default: 0.5)")  # fmt: skip
    parser.add_argument("--plain", action="store_true", help="only the schedule, as it can be edited and applied")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(options: argparse.Namespace) -> int:
    target = get_target(options.target)
    if "(" in options.input:
        spec = Spec.parse(options.input)
        return _cli.isolated(
            "morello", options.input, lambda notebook: _explain(options, target, [_solve(options, target, spec)], [])
        )
    if options.schedule:
        raise InputError("--schedule goes with a Spec, not with a file (write it on the morello.spec op instead)")
    return _cli.isolated("morello", options.input, lambda notebook: _file(options, target, notebook))


def _solve(options: argparse.Namespace, target: Target, spec: Spec) -> Solution:
    search = search_for(target)
    if not options.schedule:
        return search.solve(spec)
    return search.complete(spec, parse(_cli.read_text(options.schedule)))


def _file(options: argparse.Namespace, target: Target, notebook: _cli.Notebook) -> int:
    notebook.note("loading MLIR")
    remarks: list[str] = []
    return _explain(options, target, list(_lifted(options.input, target, notebook, remarks)), remarks)


def _lifted(path: str, target: Target, notebook: _cli.Notebook, remarks: list[str]) -> Iterator[Solution]:
    """The solutions of every Spec that lifting finds in the module at `path`; what it says goes to `remarks`."""
    from ..dialect import spec_ops
    from ..passes.pipeline import run_pipeline
    from ..passes.pipelines import stages
    from ..runtime.context import parse_file, parse_text

    module = parse_text(_cli.read_bytes("-")) if path == "-" else parse_file(path)
    with module.context:
        notebook.note("lifting")
        said = run_pipeline(module.operation, f"builtin.module({stages(target=target.name)['lift']})")
        remarks += map(str, said)
        found: dict[tuple[Spec, str | None], Any] = {}
        for op in spec_ops(module.operation):
            found.setdefault((op.spec.canonical(), op.schedule_text), op)
    search = search_for(target)
    for spec, text in found:
        notebook.note(f"searching {spec}")
        yield search.solve(spec) if text is None else search.complete(spec, parse(text))


def _explain(options: argparse.Namespace, target: Target, solutions: list[Solution], remarks: list[str]) -> int:
    if options.json:
        print(json.dumps([_record(s, target) for s in solutions], indent=2))
        return 0
    if not solutions:
        print("nothing was lifted" + (":" if remarks else ""), *remarks, sep="\n")
    for number, s in enumerate(solutions):
        if number:
            print()
        assert not has_hole(s.schedule)
        print(to_text(s.schedule) if options.plain else explain(s.spec, s.schedule, target, least=options.least))
    return 0


def _record(s: Solution, target: Target) -> dict[str, Any]:
    moved = traffic(steps(s.spec, s.schedule, target))
    return {
        "spec": str(s.spec),
        "target": target.name,
        "cost": s.cost,
        "cycles": s.cycles,
        "source": s.source,
        "search_s": s.seconds,
        "traffic": {f"{a} to {b}": n for (a, b), n in moved.items()},
        "schedule": to_text(s.schedule),
    }
