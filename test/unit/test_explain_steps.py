"""Explained schedules: whatever the goal, the numbers of the steps add up, and the text is the schedule."""

from __future__ import annotations

import pytest

from morello_mlir.chains import ChainSpec
from morello_mlir.chains import schedule as chain_schedule
from morello_mlir.chains.search import chain_search_for
from morello_mlir.nests import NestSpec
from morello_mlir.nests.search import NestSearch
from morello_mlir.report import explained
from morello_mlir.search.explain import steps
from morello_mlir.search.schedule import parse
from morello_mlir.search.solve import Search
from morello_mlir.search.steps import Step
from morello_mlir.spec import Spec, matmul_spec
from morello_mlir.targets import TARGETS

AVX2 = TARGETS["avx2"]


def check_sums(root: Step, cost: int) -> None:
    """All steps together cost what the search says, and each what it and those below it do."""
    assert root.total == cost == sum(step.own for step in root.walk())
    for step in root.walk():
        assert step.own >= 0 and step.total == step.own + sum(below.total for below in step.below)


def test_the_steps_add_up_to_the_cost() -> None:
    best = Search(AVX2).solve(matmul_spec(37, 24, 40))
    check_sums(steps(best.spec, best.schedule, AVX2), best.cost)


@pytest.mark.parametrize(
    "text",
    [
        # What is done to the sums; threads with a remainder; packed ahead; a window.
        'Matmul([1, 37, 24, 40], ROW, ROW, ROW, serial, then "y = max(add(x0, x1), 0.0:f32)" [f32, (f32, [n])])',
        "Matmul([3, 37, 24, 40], ROW, ROW, ROW, parallel 2)",
        "Matmul([1, 37, 24, 40], ROW, (f32, GL, row_major, const), ROW, serial)",
        "Matmul([1, 8, 18, 5], (f32, GL, row_major, m%4, k%6, lap 1:1:2:1, lap 4:6:1:1), ROW, ROW, serial)",
    ],
)
def test_steps_of_every_contraction_add_up(text: str) -> None:
    spec = Spec.parse(text.replace("ROW", "(f32, GL, row_major)"))
    best = Search(AVX2).solve(spec)
    shown = explained(best.spec, best.schedule, AVX2)
    check_sums(shown.root, best.cost)
    assert parse(shown.text(least=0).partition("\n\n")[2]) == best.schedule
    then = [step for step in shown.root.walk() if step.label.startswith("// then")]
    assert len(then) == (spec.then is not None)
    assert all(step.own and step.traffic == {("GL", "L2"): 4 * 40} for step in then)


BODY = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
NEST = f'Softmax([9, 100 scan], (f32, GL, [100, 1]), (f32, GL, [100, 1]), "{BODY}", THREADS)'


@pytest.mark.parametrize(
    ("threads", "schedule"),
    [
        ("serial", "?"),
        ("parallel 2", "?"),
        ("parallel 2", "parallel tile d0 by 4:\n  ?\nrest:\n  ?"),
        ("parallel 4", "parallel tile d0 by 2:\n  ?\nrest:\n  ?"),
        ("serial", "reciprocal\ntile d0 by 8:\n  rows vector d1 pipeline 1:\n    ?\nrest:\n  ?"),
        ("serial", "stage m:\n  partial d1 by 64:\n    ?\n  rest:\n    ?\n  combine:\n    ?\nthen:\n  ?"),
    ],
)
def test_steps_of_nests_add_up(threads: str, schedule: str) -> None:
    best = NestSearch(AVX2).complete(NestSpec.parse(NEST.replace("THREADS", threads)), parse(schedule))
    shown = explained(best.spec, best.schedule, AVX2)
    check_sums(shown.root, best.cost)
    assert parse(shown.text(least=0).partition("\n\n")[2]) == best.schedule


def test_bytes_of_a_nest_are_those_of_its_operands() -> None:
    n = 1 << 20
    spec = NestSpec.parse(f'Map([{n}], (f32, GL, [1]), (f32, GL, [1]), (f32, GL, [1]), "y = add(x0, x1)", serial)')
    found = NestSearch(AVX2).solve(spec)
    moved = explained(found.spec, found.schedule, AVX2).traffic
    assert moved.pop(("GL", "L1")) == 2 * 4 * n
    assert list(moved.values()) == [4 * n] and {a for a, _ in moved} <= {"L1", "VRF"}


def test_what_is_near_moves_less() -> None:
    """Rows that are read twice come from memory once."""
    spec = NestSpec.parse(NEST.replace("9", "900").replace("100", "4000").replace("THREADS", "serial"))
    text = "reciprocal\nrows vector d1:\n    pass m\n    pass s store e to y\n    pass y"
    found = NestSearch(AVX2).complete(spec, parse(text))
    root = explained(found.spec, found.schedule, AVX2).root
    first, second, third = (step for step in root.walk() if step.label.startswith("pass"))
    assert first.traffic == {("GL", "L1"): 900 * 4000 * 4}
    assert ("GL", "L1") not in second.traffic and ("GL", "L1") not in third.traffic


ROW = "(f32, GL, row_major)"
HELD = "(f32, GL, [220, 20, 1])"
CHAIN = (
    f"Chain(t0 = Matmul([2, 11, 4, 20], {ROW}, {ROW}, {ROW}, serial) of x0, x1 | "
    f't1 = Softmax([2, 11, 20 scan], {HELD}, {HELD}, "{BODY}", serial) of t0 | '
    f"y = Matmul([2, 11, 20, 8], {ROW}, {ROW}, {ROW}, serial) of t1, x2, THREADS)"
)
STAGES = "bufferize t0 to L2\nbufferize t1 in t0\n" + "".join(f"stage {i}:\n    ?\n" for i in (1, 2, 3))
PARTS = ("scores", "start", "update", "carry", "rescale", "weigh", "finish")
REST = ("scores", "update", "weigh")
ONLINE = "online n by 8:\n    bufferize t0 to L2\n" + "".join(f"    {part}:\n        ?\n" for part in PARTS)
ONLINE += "rest:\n" + "".join(f"    {part}:\n        ?\n" for part in REST)


def nested(*lines: str, body: str) -> str:
    """`body` under lines that each open a block (or not, where no colon ends them)."""
    for line in reversed(lines):
        pad = "    " if line.endswith(":") else ""
        body = line + "\n" + "".join(pad + each + "\n" for each in body.splitlines())
    return body


@pytest.mark.parametrize(
    ("threads", "schedule"),
    [
        ("serial", "?"),
        ("parallel 2", "?"),
        ("serial", nested("tile b by 1:", "pack rhs of stage 1 to L2 as [b, n/8, k, n%8]", body=STAGES)),
        ("serial", nested("tile b by 1:", "tile m by 4:", body=STAGES) + "    rest:\n        ?"),
        ("parallel 2", nested("parallel tile m by 3:", "tile b by 1:", body=STAGES) + "rest:\n    ?"),
        ("serial", nested("tile b by 1:", body=ONLINE)),
    ],
)
def test_steps_of_chains_add_up(threads: str, schedule: str) -> None:
    search = chain_search_for(AVX2, "off")
    best = search.complete(ChainSpec.parse(CHAIN.replace("THREADS", threads)), chain_schedule.parse(schedule))
    shown = explained(best.spec, best.schedule, AVX2)
    check_sums(shown.root, best.cost)
    assert chain_schedule.parse(shown.text(least=0).partition("\n\n")[2]) == best.schedule
    assert shown.threads == (1 if threads == "serial" else 2)
    assert shown.flops >= best.spec.flops and shown.bytes == best.spec.bytes


def test_a_chain_of_stages_alone_has_no_line_above_them() -> None:
    search = chain_search_for(AVX2, "off")
    spec = ChainSpec.parse(CHAIN.replace("THREADS", "serial").replace("[2,", "[1,").replace("[220,", "[0,"))
    best = search.complete(spec, chain_schedule.parse(STAGES.replace("in t0", "to L2")))
    shown = explained(best.spec, best.schedule, AVX2)
    check_sums(shown.root, best.cost)
    assert not shown.root.label and [s.label for s in shown.root.below][:3] == [
        "bufferize t0 to L2",
        "bufferize t1 to L2",
        "stage 1:",
    ]


def test_the_record_has_the_same_tree() -> None:
    best = Search(AVX2).solve(matmul_spec(37, 24, 40))
    shown = explained(best.spec, best.schedule, AVX2)
    record = shown.record()

    def same(step: Step, each: dict) -> None:
        assert each["step"] == step.label and each["cycles"] * 1000 == step.total and each["runs"] == step.runs
        assert sum(each["traffic"].values()) == sum(step.traffic.values())
        for below, inner in zip(step.below, each["below"], strict=True):
            same(below, inner)

    same(shown.root, record["steps"])
    assert record["cost"] == best.cost and record["traffic"].keys() >= {"GL to L2", "L2 to L1"}
