"""`morello explain`: the schedules of a module's goals, or of one given as text."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..report import Explained, Page, shares_text
from ..search.schedule import INDENT
from ..search.solve import search_for
from ..targets import Target, get_target, thread_count
from ..tuning.kinds import AnySolved, schedule_text
from ..tuning.tuner import Tuned, Tuner, candidate_count, check_measurable
from . import _cli
from ._goals import Answer, Lifted, goal, is_goal, lifted, solve
from ._progress import measuring
from ._timing import timed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input",
        metavar="FILE|SPEC",
        help="an MLIR or ONNX file (- for MLIR on stdin), or a Spec such as 'Matmul([...], ...)'",
    )
    parser.add_argument("--target", default="host", help="the machine: host, avx2, avx512, or a CPU by name")
    parser.add_argument("--threads", metavar="N", help="of the Specs in a FILE, as for compile() (default: all cores)")
    parser.add_argument("--schedule", metavar="FILE", help="explain this schedule of the Spec, its holes filled")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT",
                        help="cut branches that cost less than this share (default: 0.5)")  # fmt: skip
    parser.add_argument("--plain", action="store_true", help="only the schedule, as it can be edited and applied")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--shares", action="store_true",
                        help="of a FILE: each Spec's share of the cost, and what is left to upstream")  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="write a page with the trees, a roofline and the shares of all")
    parser.add_argument("--clock", type=_clock, metavar="GHZ",
                        help="by which a page makes seconds of cycles (default: this machine's, measured)")  # fmt: skip
    parser.add_argument("--top-k", type=int, metavar="N",
                        help="also list the N cheapest schedules that a machine can tell apart")  # fmt: skip
    parser.add_argument("--measure", action="store_true",
                        help="time the cheapest schedules on this machine, and explain the fastest; with --html: time "
                             "every goal (and choose among --top-k schedules of it)")  # fmt: skip


def _clock(text: str) -> float:
    value = float(text)
    if not 0 < value < 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is no clock in GHz")
    return value


def run(options: argparse.Namespace) -> int:
    target = get_target(options.target)
    if options.clock is not None and options.html is None:
        raise InputError("--clock is of a page: give --html too")
    # A page shows what was measured beside what was predicted: that needs no choice.
    choosing = options.measure and (options.html is None or options.top_k is not None)
    count = candidate_count(options.top_k, choosing)
    if options.measure:
        check_measurable(target)
    if options.schedule and (options.top_k is not None or choosing):
        raise InputError("--schedule names the schedule: there is nothing to choose for --top-k or --measure")
    tuner = Tuner(search_for(target), count, measure=choosing)
    if is_goal(options.input):
        text = _cli.read_text(options.schedule) if options.schedule else None
        found = Lifted([goal(options.input, text)])
        return _cli.isolated("morello", options.input, lambda notebook: _explain(options, tuner, found, notebook))
    if options.schedule:
        where = "write it on the op: morello.schedule of a linalg op, schedule of morello.spec"
        raise InputError(f"--schedule goes with a Spec, not with a file ({where})")
    return _cli.isolated("morello", options.input, lambda notebook: _file(options, tuner, notebook))


def _file(options: argparse.Namespace, tuner: Tuner, notebook: _cli.Notebook) -> int:
    found = lifted(options.input, tuner.target, thread_count(options.threads), notebook)
    return _explain(options, tuner, found, notebook)


def _explain(options: argparse.Namespace, tuner: Tuner, found: Lifted, notebook: _cli.Notebook) -> int:
    with measuring(tuner.measure):
        answers = [solve(asked, tuner, notebook) for asked in found.goals]
    for answer in answers:
        for problem in _problems(answer.tuned):
            print(f"warning: {answer.explained.spec}: {problem}", file=sys.stderr)
    if options.html is not None:
        if options.measure:
            pairs = [(a.explained, asked.function) for a, asked in zip(answers, found.goals, strict=True)]
            goals = timed(pairs, options.target, notebook)
            answers = [replace(a, explained=goal) for a, goal in zip(answers, goals, strict=True)]
        goals = [answer.explained for answer in answers]
        _cli.write_text(options.html, _page(options, tuner.target, goals, found, notebook).html())
    if not answers and (options.shares or options.plain):
        print(_nothing(found), file=sys.stderr)
    if options.json:
        print(json.dumps([_record(answer) for answer in answers], indent=2))
    elif options.shares:
        print(shares_text([a.explained for a in answers], found.left))
    elif options.plain:
        print("\n\n".join(_plain(answer, listed=options.top_k is not None) for answer in answers))
    elif options.html is None:
        _print(options, answers, found)
    return 0


def _page(
    options: argparse.Namespace, target: Target, goals: list[Explained], found: Lifted, notebook: _cli.Notebook
) -> Page:
    """What --html writes."""
    from ..tuning.clock import clock_of

    notebook.note("measuring the clock")
    clock = clock_of(target, options.clock)
    title = options.input if is_goal(options.input) else _cli.display_name(options.input)
    return Page(title, target, goals, clock.hertz, clock.source, clock.notes, found.left)


def _problems(tuned: Tuned) -> list[str]:
    return [problem for problem in (tuned.problem, *(tuned.measured.problems if tuned.measured else ())) if problem]


def _print(options: argparse.Namespace, answers: Sequence[Answer], found: Lifted) -> None:
    """Every goal with its tree; of several, also what each takes of the whole."""
    if not answers:
        print(_nothing(found))
    for number, answer in enumerate(answers):
        print(("\n" if number else "") + answer.explained.text(options.least))
        _list(answer.tuned)
    if len(answers) > 1:
        print("\n" + shares_text([a.explained for a in answers], found.left))


def _nothing(found: Lifted) -> str:
    """That nothing was lifted, and why not."""
    return "\n".join(["nothing was lifted" + ":" * bool(found.remarks), *found.remarks])


def _list(tuned: Tuned) -> None:
    """What was measured, and the candidates with cost, time and text."""
    if tuned.winner is not None:
        print(f"\n{tuned.describe()}")
    if len(tuned.candidates) > 1:
        for number, candidate in enumerate(tuned.candidates):
            print(f"\n{_headline(tuned, number)}", textwrap.indent(_text(candidate), INDENT), sep="\n")


def _plain(answer: Answer, *, listed: bool) -> str:
    """The schedule, or the candidates, as they can be edited, each under a comment."""
    tuned = answer.tuned
    if not listed or not tuned.candidates:
        return answer.explained.schedule
    texts = [f"// {_headline(tuned, n)}\n{_text(c)}" for n, c in enumerate(tuned.candidates)]
    return "\n\n".join(texts)


def _text(candidate: AnySolved) -> str:
    return schedule_text(candidate.spec, candidate.schedule)


def _headline(tuned: Tuned, number: int) -> str:
    candidate, best = tuned.candidates[number], tuned.candidates[0]
    text = f"schedule {number + 1}: {candidate.cycles:,.0f} cycles predicted"
    if number:
        text += f", {candidate.cost / best.cost - 1:+.2%}"
    if tuned.measured is None:
        return text
    seconds = tuned.measured.seconds.get(number)
    return text + (", not timed" if seconds is None else f", {1e6 * seconds:,.2f} us")


def _record(answer: Answer) -> dict[str, Any]:
    record = {**answer.explained.record(), "search_s": answer.seconds, "measured_s": answer.explained.measured_s}
    winner, measured = answer.tuned.winner, answer.tuned.measured
    seconds = measured.seconds if measured else {}
    return {
        **record,
        "measured_s": winner.seconds if winner else record["measured_s"],
        "model_s": winner.model_seconds if winner else None,
        "alternatives": [
            {"cost": c.cost, "cycles": c.cycles, "measured_s": seconds.get(i), "schedule": _text(c)}
            for i, c in enumerate(answer.tuned.candidates)
        ],
    }
