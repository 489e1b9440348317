"""`morello explain`: the schedules of a module's goals, or of one given as text."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ..chains import ChainSpec
from ..chains import is_chain as is_chain_text
from ..chains import schedule as chain_schedule
from ..chains.search import ChainSolution, chain_search_for
from ..errors import InputError
from ..nests import NestSpec, is_nest
from ..nests.explain import explain as explain_nest
from ..nests.search import NestSolution, nest_search_for
from ..search.explain import explain, packed_ahead, steps, traffic
from ..search.schedule import INDENT, has_hole, parse, to_text
from ..search.solve import Solution, search_for
from ..spec import Spec
from ..targets import Target, get_target, thread_count
from ..tuning.tuner import Tuned, Tuner, candidate_count, check_measurable
from . import _cli, _shares

#: Goals that have no candidates to choose from.
Other = NestSolution | ChainSolution


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", metavar="FILE|SPEC", help="an MLIR file (- for stdin), or a Spec such as 'Matmul([...], ...)'"
    )
    parser.add_argument("--target", default="host", help="the machine: host, avx2, avx512 (default: host)")
    parser.add_argument("--threads", metavar="N", help="of the Specs in a FILE, as for compile() (default: all cores)")
    parser.add_argument("--schedule", metavar="FILE", help="explain this schedule of the Spec, its holes filled")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT",
                        help="cut branches that cost less than this share (default: 0.5)")  # fmt: skip
    parser.add_argument("--plain", action="store_true", help="only the schedule, as it can be edited and applied")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--shares", action="store_true",
                        help="of a FILE: each Spec's share of the cost, and what is left to upstream")  # fmt: skip
    parser.add_argument("--top-k", type=int, metavar="N", help="also list the N cheapest schedules with different code")
    parser.add_argument("--measure", action="store_true",
                        help="time the cheapest schedules on this machine, and explain the fastest")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    target = get_target(options.target)
    count = candidate_count(options.top_k, options.measure)
    if options.measure:
        check_measurable(target)
    if options.schedule and (options.top_k is not None or options.measure):
        raise InputError("--schedule names the schedule: there is nothing to choose for --top-k or --measure")
    tuner = Tuner(search_for(target), count, measure=options.measure)
    if "(" in options.input and (is_nest(options.input) or is_chain_text(options.input)):
        goal = NestSpec.parse(options.input) if is_nest(options.input) else ChainSpec.parse(options.input)
        return _cli.isolated(
            "morello", options.input, lambda notebook: _others(options, target, [_solve_other(options, target, goal)])
        )
    if "(" in options.input:
        spec = Spec.parse(options.input)
        return _cli.isolated(
            "morello", options.input, lambda notebook: _explain(options, target, [_solve(options, tuner, spec)], [])
        )
    if options.schedule:
        raise InputError("--schedule goes with a Spec, not with a file (write it on the morello.spec op instead)")
    return _cli.isolated("morello", options.input, lambda notebook: _file(options, tuner, notebook))


def _solve(options: argparse.Namespace, tuner: Tuner, spec: Spec) -> Tuned:
    if not options.schedule:
        return tuner.solve(spec)
    return Tuned(tuner.search.complete(spec, parse(_cli.read_text(options.schedule))))


def _solve_other(options: argparse.Namespace, target: Target, goal: NestSpec | ChainSpec) -> Other:
    return _solved(goal, _cli.read_text(options.schedule) if options.schedule else None, target)


def _solved(goal: NestSpec | ChainSpec, schedule: str | None, target: Target) -> Other:
    """The cheapest schedule, or the cheapest that fills the holes of one."""
    if isinstance(goal, ChainSpec):
        chains = chain_search_for(target)
        return chains.solve(goal) if schedule is None else chains.complete(goal, chain_schedule.parse(schedule))
    nests = nest_search_for(target)
    return nests.solve(goal) if schedule is None else nests.complete(goal, parse(schedule))


def _others(options: argparse.Namespace, target: Target, found: list[Other]) -> int:
    if options.json:
        print(json.dumps([_record(s, target) for s in found], indent=2))
    for number, s in enumerate(() if options.json else found):
        if number:
            print()
        print(_text(s) if options.plain else _explained(s, target))
    return 0


def _explained(s: Other, target: Target) -> str:
    if isinstance(s, NestSolution):
        return explain_nest(s.spec, s.schedule, target)
    return f"{s.spec}\ntarget {target.name}: {s.cycles:,.0f} cycles predicted\n\n{_text(s)}"


def _text(s: Other | Solution) -> str:
    return chain_schedule.to_text(s.schedule) if isinstance(s, ChainSolution) else to_text(s.schedule)


def _record(s: Other | Solution, target: Target) -> dict[str, Any]:
    return {
        "spec": str(s.spec),
        "target": target.name,
        "cost": s.cost,
        "cycles": s.cycles,
        "source": s.source,
        "search_s": s.seconds,
        "schedule": _text(s),
    }


def _file(options: argparse.Namespace, tuner: Tuner, notebook: _cli.Notebook) -> int:
    notebook.note("loading MLIR")
    remarks: list[str] = []
    threads = thread_count(options.threads)
    others: list[Other] = []
    counts: dict[int, int] = {}
    left: Counter[str] = Counter()
    found = list(_lifted(options.input, tuner, threads, notebook, remarks, others, counts, left))
    if options.shares:
        solved: list[Any] = [*(t.solution for t in found), *others]
        print(_shares.table([(str(s.spec), s.cycles, counts[id(s)]) for s in solved], left))
        return 0
    if others and not options.json:
        code = _explain(options, tuner.target, found, remarks) if found else 0
        print("\n" if found else "", end="")
        return code or _others(options, tuner.target, others)
    return _explain(options, tuner.target, found, remarks, others)


def _lifted(
    path: str,
    tuner: Tuner,
    threads: int,
    notebook: _cli.Notebook,
    remarks: list[str],
    others: list[Other],
    counts: dict[int, int],
    left: Counter[str],
) -> Iterator[Tuned]:
    """The solutions of every Spec that lifting finds in the module at `path`; those of nests and chains go to `others`,
    what it says to `remarks`, how often the goal of each solution (its id) is called to `counts`, left ops to
    `left`."""
    from ..dialect import ChainOp, NestOp, chain_ops, goal_ops
    from ..passes.pipeline import run_pipeline
    from ..passes.pipelines import stages
    from ..runtime.context import parse_file, parse_text

    module = parse_text(_cli.read_bytes("-")) if path == "-" else parse_file(path)
    with module.context:
        notebook.note("lifting")
        lift = stages(target=tuner.target.name, threads=threads)["lift"]
        said = run_pipeline(module.operation, f"builtin.module({lift})")
        remarks += map(str, said)
        found: dict[tuple[Spec, str | None], Any] = {}
        other: dict[tuple[NestSpec | ChainSpec, str | None], Any] = {}
        calls = _shares.call_counts(module)
        left.update(_shares.left_ops(module))
        for op in (*goal_ops(module.operation), *chain_ops(module.operation)):
            if isinstance(op, (NestOp, ChainOp)):
                other.setdefault((op.spec, op.schedule_text), op)
            else:
                found.setdefault((op.spec.canonical(), op.schedule_text), op)
    for goal, text in other:
        notebook.note(f"searching {goal}")
        others.append(_solved(goal, text, tuner.target))
        counts[id(others[-1])] = calls[goal, text]
    for spec, text in found:
        notebook.note(f"searching {spec}")
        tuned = tuner.solve(spec) if text is None else Tuned(tuner.search.complete(spec, parse(text)))
        counts[id(tuned.solution)] = calls[spec, text]
        yield tuned


def _explain(
    options: argparse.Namespace,
    target: Target,
    found: list[Tuned],
    remarks: list[str],
    others: Sequence[Other] = (),
) -> int:
    for tuned in found:
        for problem in (tuned.problem, *(tuned.measured.problems if tuned.measured else ())):
            if problem:
                print(f"warning: {tuned.solution.spec}: {problem}", file=sys.stderr)
    if options.json:
        records = [_tuned_record(t, target) for t in found] + [_record(s, target) for s in others]
        print(json.dumps(records, indent=2))
        return 0
    if not found:
        print("nothing was lifted" + (":" if remarks else ""), *remarks, sep="\n")
    for number, tuned in enumerate(found):
        if number:
            print()
        s = tuned.solution
        assert not has_hole(s.schedule)
        if not options.plain:
            print(explain(s.spec, s.schedule, target, least=options.least))
            _list(tuned)
        elif options.top_k is None or not tuned.candidates:
            print(to_text(s.schedule))
        else:
            _list_plain(tuned)
    return 0


def _list(tuned: Tuned) -> None:
    """What was measured, and the candidates with cost, time and text."""
    if tuned.winner is not None:
        print(f"\n{tuned.describe()}")
    if len(tuned.candidates) > 1:
        for number, candidate in enumerate(tuned.candidates):
            print(f"\n{_headline(tuned, number)}", textwrap.indent(to_text(candidate.schedule), INDENT), sep="\n")


def _list_plain(tuned: Tuned) -> None:
    """The candidates as schedules that can be edited, each under a comment."""
    for number, candidate in enumerate(tuned.candidates):
        print(("\n" if number else "") + f"// {_headline(tuned, number)}", to_text(candidate.schedule), sep="\n")


def _headline(tuned: Tuned, number: int) -> str:
    candidate, best = tuned.candidates[number], tuned.candidates[0]
    text = f"schedule {number + 1}: {candidate.cycles:,.0f} cycles predicted"
    if number:
        text += f", {candidate.cost / best.cost - 1:+.2%}"
    if tuned.measured is None:
        return text
    seconds = tuned.measured.seconds.get(number)
    return text + (", not timed" if seconds is None else f", {1e6 * seconds:,.2f} us")


def _tuned_record(tuned: Tuned, target: Target) -> dict[str, Any]:
    s, winner = tuned.solution, tuned.winner
    seconds = tuned.measured.seconds if tuned.measured else {}
    moved = traffic(steps(s.spec, s.schedule, target))
    return {
        **_record(s, target),
        "traffic": {f"{a} to {b}": n for (a, b), n in moved.items()},
        "packed_ahead": [asdict(p) for p in packed_ahead(s.spec, s.schedule)],
        "measured_s": winner.seconds if winner else None,
        "model_s": winner.model_seconds if winner else None,
        "alternatives": [
            {"cost": c.cost, "cycles": c.cycles, "measured_s": seconds.get(i), "schedule": to_text(c.schedule)}
            for i, c in enumerate(tuned.candidates)
        ],
    }
