"""What the code of nests looks like: what it loads, when it stores, what it asks for, and that it calls nothing."""

from __future__ import annotations

import ctypes
import mmap
import re

import numpy as np
import pytest
from nest_support import depthwise, softmax
from test_nest_borders import windows
from test_nest_lowering import SOFTMAX, TARGETS, compare, compiled, inputs_of, jit, llvm_of, needs, run, text_of

from morello_mlir.nests import NestSpec
from morello_mlir.search.schedule import parse


def before_a_hole(values: np.ndarray) -> np.ndarray:
    """The values where reading the next byte ends the process."""
    size = -(-values.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(start + size), mmap.PAGESIZE, 0) == 0
    out = np.frombuffer(memory, values.dtype, values.size, size - values.nbytes)
    out[:] = values
    return out


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_elements_a_few_apart(target: str) -> None:
    """They are picked from whole vectors, which do not reach beyond the last of them."""
    needs(target)
    jobs = []
    for dtype, op in (("f32", "neg"), ("bf16", "neg"), ("f64", "abs"), ("i8", "abs"), ("i1", "not")):
        for stride in (2, 3, 4, 5):
            for n in (3, 16, 37):
                x, y = f"({dtype}, GL, [{n * stride + 1}, {stride}])", f"({dtype}, GL, [{n}, 1])"
                body = f"y = {op}(x0)" if dtype != "i1" else "y = xor(x0, x0)"
                spec = NestSpec.parse(f'Map([2, {n}], {x}, {y}, "{body}", serial)')
                jobs.append((spec, parse("rows vector d1:\n    pass y")))
    library = compiled(jobs, TARGETS[target])
    for i, (spec, _) in enumerate(jobs):
        inputs = [before_a_hole(a) for a in inputs_of(spec, np.random.default_rng(i), special=True)]
        compare(spec, run(library, i, spec, inputs), inputs)


@pytest.mark.parametrize("straight", [True, False])
def test_windows_finish_one_vector_after_the_other(straight: bool) -> None:
    """Straight code stores a vector before the next begins; loops have all of a group's accumulators at once."""
    unroll = " unroll d3 by 3 unroll d4 by 3" if straight else " unroll d4 by 3"
    node = parse(f"rows vector d2 by 2 tile d1 by 2:\n    pass y{unroll}")
    lines = text_of([(depthwise(4, 4, 32), node)], TARGETS["avx512"]).splitlines()
    first = next(i for i, line in enumerate(lines) if "vector.store" in line)
    assert any("vector.fma" in line for line in lines[first:]) == straight
    if straight:
        # Neighbours along a line share two of three pixels: the loads of a line come once, and in order.
        assert sum("vector.load" in line for line in lines[:first]) == 3 * 4 + 9


def test_the_next_block_is_asked_for() -> None:
    """While one is summed; where all is near, nothing is."""
    schedule = parse("rows vector d1:\n    pass m, s online by 1024\n    pass y")
    text = text_of([(softmax(2, 65536), schedule)], TARGETS["avx2"])
    assert "memref.prefetch" in text
    schedule = parse("rows vector d1:\n    pass m, s online by 256\n    pass y")
    assert "memref.prefetch" not in text_of([(softmax(2, 1024), schedule)], TARGETS["avx2"])


def test_no_library_calls() -> None:
    """The loops of softmax call nothing."""
    text = llvm_of([(softmax(8, 2048), parse(SOFTMAX["one loop"].format(u=2)))], TARGETS["avx2"])
    assembly = jit.emit(text, jit.Options(vectorize=False), "asm")
    calls = [line for line in assembly.splitlines() if "call" in line.split("#")[0]]
    assert not [line for line in calls if "exp" in line]


@pytest.mark.parametrize(
    ("schedule", "where"),
    [
        # Rows that threads share may all be outside, which only they know; a column of pixels as well.
        ("parallel tile d0 by 2:\n    rows vector d2:\n        pass y", "select"),
        ("parallel tile d1 by 3:\n    rows vector d2:\n        pass y", "select"),
        # Of channels all are inside, of whole images it is known which pixels are.
        ("parallel tile d2 by 16:\n    rows vector d2:\n        pass y unroll d3 by 3 unroll d4 by 3", "nowhere"),
    ],
)
def test_loads_without_a_lane_are_of_mapped_memory(schedule: str, where: str) -> None:
    """A load of which no lane may be read is of the image's first element, not of what lies beside it."""
    spec = windows(6, 9, 32, threading="parallel 2")
    lines = text_of([(spec, parse(schedule))], TARGETS["avx512"]).splitlines()
    made = {line.split(" = ")[0].strip(): line.split(" = ")[1] for line in lines if " = " in line}
    places = [re.findall(r"\[(%\w+)\]", line)[0] for line in lines if "vector.maskedload" in line]
    if where == "nowhere":
        assert not places
        return
    assert places
    for place in places:
        op, *operands = made[place].split()
        assert op == "arith.select"
        assert made[operands[2]].startswith("arith.constant 0 : index")


@pytest.mark.parametrize(("taps", "known"), [(3, True), (5, False)])
def test_trips_at_borders_have_code_of_their_own(taps: int, known: bool) -> None:
    """Where few trips of a loop are at borders, it is known what they read; else run time has to look."""
    spec = windows(28, 6, 32, taps=taps, pads=(taps // 2, taps // 2), threading="parallel 2")
    unroll = f"unroll d3 by {taps} unroll d4 by {taps}"
    node = parse(f"parallel tile d0 by 1:\n    rows vector d2:\n        pass y {unroll}")
    text = text_of([(spec, node)], TARGETS["avx512"])
    assert ("vector.maskedload" not in text) == known
    assert ("arith.cmpi ult" not in text) == known
