"""The goal of a chain: stages, each of which reads what is given (x0, x1, ...) or what an earlier one made (t0, ...).

Chain(t0 = Matmul([12, 128, 64, 128], ..., serial) of x0, x1 |
      t1 = Softmax([12, 128, 128 scan], ..., serial) of t0 |
      y = Matmul([12, 128, 128, 64], ..., serial) of t1, x2, parallel 2)

A stage is a contraction or a nest, as if it stood alone with dense intermediate results. All have the dims b and m in
common: a nest has them as its first two, followed by one more. Along these a chain is tiled, so that an intermediate
result is only ever as large as a tile of it. b may be several dims of a nest, [2, 6, 128, 128 scan] for b = 12, where
what it reads does not step evenly along b: a mask for each sequence and all of its heads.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

from ..cached import cached_property
from ..errors import SpecError, excerpt
from ..hashed import Hashed
from ..nests import NestSpec, is_nest
from ..nests.ops import element_bytes
from ..spec import Spec, dense_strides, dtype_bytes
from ..spec.spec import MAX_THREADS
from .masks import Mask, factor, hides, hides_by_adding

FUNCTION = "Chain"
_STAGE = re.compile(r"\s*(y|t[0-9]{1,3})\s*=\s*(.*)\bof\s+((?:[xt][0-9]{1,3}\s*,\s*)*[xt][0-9]{1,3})\s*", re.S)
_END = re.compile(r"(.*),\s*(serial|parallel(?:\s+[0-9]{1,9})?)\s*", re.S)


@dataclass(frozen=True, slots=True)
class Stage:
    """goal: what is computed. reads: the names of its inputs, in the order of its operands; of a contraction: lhs, rhs,
    and what is done to the sums reads."""

    goal: Spec | NestSpec
    reads: tuple[str, ...]

    @property
    def is_contraction(self) -> bool:
        return isinstance(self.goal, Spec)

    @property
    def joint(self) -> tuple[int, int]:
        """The sizes of b and m."""
        if isinstance(self.goal, Spec):
            return self.goal.dims[0], self.goal.dims[1]
        *batch, m, _ = self.goal.dims
        return math.prod(batch), m

    @property
    def shape(self) -> tuple[int, int, int]:
        """The sizes of what it makes: b, m and its columns."""
        goal = self.goal
        if isinstance(goal, Spec):
            return goal.dims[0], goal.dims[1], goal.dims[3]
        n = goal.dims[-1]
        return *self.joint, n if goal.outputs[0].strides[-1] or n == 1 else 1

    @property
    def dtype(self) -> str:
        """Of what it makes."""
        return self.goal.operands[-1].dtype

    def dense(self, columns: int) -> tuple[int, ...]:
        """How a nest steps through a dense intermediate result of so many columns."""
        return _strides_of((*self.goal.dims[:-1], columns))


@dataclass(frozen=True)
class ChainSpec(Hashed):
    """A goal. The last stage makes the output. serial, threads: as in Spec. mask: what is known of the input that is
    the mask of the softmax, if anything is.

    Raises SpecError where the stages do not fit each other.
    """

    stages: tuple[Stage, ...]
    serial: bool = True
    threads: int = 0
    mask: Mask | None = None

    def __post_init__(self) -> None:
        if len(self.stages) < 2:
            raise SpecError("a chain has two stages or more")
        if not 0 <= self.threads <= MAX_THREADS:
            raise SpecError(f"{self.threads} threads are not between 1 and {MAX_THREADS}")
        if self.serial and self.threads > 1:
            raise SpecError("a serial goal has one thread")
        for at, stage in enumerate(self.stages):
            try:
                _check_goal(stage)
                self._check_reads(at, stage)
            except SpecError as error:
                raise SpecError(f"stage {at + 1}: {error}") from None
        self._check_inputs()
        if self.mask is not None and not self._hides(self.mask):
            raise SpecError(f"{self.mask}: that hides nothing from a softmax")

    def _check_reads(self, at: int, stage: Stage) -> None:
        if stage.joint != self.stages[0].joint:
            raise SpecError(f"b and m are {list(stage.joint)}, and {list(self.stages[0].joint)} in the first stage")
        for i, name in enumerate(stage.reads):
            if name[0] != "t":
                continue
            if int(name[1:]) >= at:
                raise SpecError(f"{name} is not made by a stage before it")
            made = self.stages[int(name[1:])]
            if isinstance(stage.goal, Spec) and i:
                why = "all of rhs is needed for every tile" if i == 1 else "what is done to the sums reads inputs"
                raise SpecError(f"{name} can only be lhs: {why}")
            if stage.goal.operands[i].dtype != made.dtype:
                raise SpecError(f"{name} is {made.dtype}, and {stage.goal.operands[i].dtype} here")
            if isinstance(stage.goal, Spec):
                if stage.goal.operand_shape(0) != made.shape or not is_dense(stage.goal, 0):
                    raise SpecError(f"{name} is a dense {list(made.shape)}, and something else here")
            elif stage.goal.operands[i].strides != stage.dense(made.shape[2]):
                raise SpecError(f"{name} has the strides {list(stage.dense(made.shape[2]))}, not others")
        if at + 1 < len(self.stages):
            last = len(stage.goal.operands) - 1
            if isinstance(stage.goal, Spec):
                dense = is_dense(stage.goal, last)
            else:
                dense = stage.goal.operands[last].strides == stage.dense(stage.shape[2])
            if not dense:
                raise SpecError("what an inner stage makes is dense")

    def _check_inputs(self) -> None:
        named = {n for s in self.stages for n in s.reads}
        given = sorted(int(n[1:]) for n in named if n[0] == "x")
        if given != list(range(len(given))):
            raise SpecError("inputs are x0, x1, ... without a gap")
        unused = [f"t{i}" for i in range(len(self.stages) - 1) if f"t{i}" not in named]
        if unused:
            raise SpecError(f"{unused[0]} is made and not used")

    def _hides(self, mask: Mask) -> bool:
        """Whether scores where the mask says so are -inf for a softmax over the columns."""
        readers = self.readers(mask.name)
        if len(readers) != 1 or len(self.stages) < 2 or readers[0][0] != 1:
            return False
        goal, k = self.stages[1].goal, readers[0][1]
        if not isinstance(goal, NestSpec) or not goal.scan[-1] or not all(goal.operands[k].strides[-2:]):
            return False
        largest = [v for v in goal.body.values if v.op in ("reduce_max", "reduce_maxnum")]
        if len(largest) != 1:
            return False
        return hides(goal.body, k, mask.value, largest[0].args[0]) or self._factor(mask, largest[0].args[0]) is not None

    def _factor(self, mask: Mask, at: int) -> float | None:
        """The largest factor of the sums on the way to value number `at` of the softmax, where the mask is added to
        them; None where it is not, or more is done to them."""
        first, softmax = self.stages[0].goal, self.stages[1]
        if not isinstance(first, Spec) or "t0" not in softmax.reads or self.stages[0].dtype != "f32":
            return None
        assert isinstance(softmax.goal, NestSpec)
        names = softmax.reads
        found = hides_by_adding(softmax.goal.body, names.index(mask.name), mask.value, at, names.index("t0"))
        before = 1.0 if first.then is None else factor(first.then.body, first.then.body.outputs[0], 0)
        return None if found is None or before is None or first.sums != "f32" else found * before

    @cached_property
    def bound(self) -> float | None:
        """What no element of the first stage's inputs may exceed so that a mask that is added to the scores hides what
        it says: all scores are finite then. None where it does so anyway, or there is none."""
        if self.mask is None:
            return None
        goal, k = self.stages[1].goal, self.readers(self.mask.name)[0][1]
        assert isinstance(goal, NestSpec)
        at = next(v.args[0] for v in goal.body.values if v.op in ("reduce_max", "reduce_maxnum"))
        if hides(goal.body, k, self.mask.value, at):
            return None
        times = self._factor(self.mask, at)
        assert times is not None
        return float(2.0 ** ((120 - math.ceil(math.log2(times * max(1, self.stages[0].goal.dims[2])))) // 2))

    # ------------------------------------------------------------ questions

    @property
    def function(self) -> str:
        return FUNCTION

    @property
    def dims(self) -> tuple[int, int]:
        """The sizes of b and m."""
        return self.stages[0].joint

    @cached_property
    def wholes(self) -> dict[tuple[int, str], tuple[Any, dict[str, int]]]:
        """What `Point.whole` has found, by stage and target: many points ask."""
        return {}

    @cached_property
    def inputs(self) -> int:
        """How many inputs there are."""
        return len({n for s in self.stages for n in s.reads if n[0] == "x"})

    @property
    def names(self) -> tuple[str, ...]:
        """Of its operands: the inputs, then the output."""
        return (*(f"x{k}" for k in range(self.inputs)), "y")

    def readers(self, name: str) -> list[tuple[int, int]]:
        """Where `name` is read: (stage, operand)."""
        return [(s, i) for s, stage in enumerate(self.stages) for i, n in enumerate(stage.reads) if n == name]

    def in_place(self, at: int) -> int | None:
        """The intermediate result that stage `at` may overwrite with its own: a nest reads every element where it
        writes it, and nobody needs what was there. None: there is none."""
        stage = self.stages[at]
        if stage.is_contraction or at + 1 == len(self.stages):
            return None
        for i, name in enumerate(stage.reads):
            if name[0] != "t" or len(self.readers(name)) > 1:
                continue
            made = self.stages[int(name[1:])]
            if (made.shape, made.dtype) == (stage.shape, stage.dtype) and all(stage.goal.operands[i].strides):  # type: ignore[union-attr]
                return int(name[1:])
        return None

    @cached_property
    def bytes(self) -> int:
        """Of inputs and output, each counted once."""
        total = 0
        for k in range(self.inputs):
            at, i = self.readers(f"x{k}")[0]
            total += _bytes(self.stages[at].goal, i)
        return total + _bytes(self.stages[-1].goal, len(self.stages[-1].reads))

    @property
    def flops(self) -> int:
        """Of the contractions."""
        return sum(s.goal.flops for s in self.stages if isinstance(s.goal, Spec))

    @property
    def threading(self) -> str:
        """`serial`, `parallel` or `parallel 4`."""
        return "serial" if self.serial else f"parallel {self.threads}" if self.threads else "parallel"

    def canonical(self) -> ChainSpec:
        """Equal goals as equal objects."""
        alone = self.serial or self.threads == 1
        stages = tuple(replace(s, goal=s.goal.canonical()) if isinstance(s.goal, Spec) else s for s in self.stages)
        return replace(self, stages=stages, serial=alone, threads=0 if alone else self.threads)

    # ------------------------------------------------------------ text

    def __str__(self) -> str:
        return f"{FUNCTION}({' | '.join(self.lines())}, {self.threading})"

    def lines(self) -> list[str]:
        """Its stages, one text each, and what is known of a mask."""
        last = len(self.stages) - 1
        lines = [
            f"{'y' if i == last else f't{i}'} = {s.goal} of {', '.join(s.reads)}" for i, s in enumerate(self.stages)
        ]
        return lines if self.mask is None else [*lines, str(self.mask)]

    @staticmethod
    def of_lines(lines: list[str], serial: bool = True, threads: int = 0) -> ChainSpec:
        """From what `lines` gave. Raises SpecError."""
        stages = []
        mask = Mask.parse(lines[-1]) if lines and Mask.is_text(lines[-1]) else None
        lines = lines if mask is None else lines[:-1]
        for i, line in enumerate(lines):
            m = _STAGE.fullmatch(line)
            name = "y" if i + 1 == len(lines) else f"t{i}"
            if not m or m[1] != name:
                raise SpecError(f"stage {i + 1}: expected '{name} = Function(...) of x0, ...', not '{line.strip()}'")
            try:
                goal = NestSpec.parse(m[2]) if is_nest(m[2]) else Spec.parse(m[2])
            except SpecError as error:
                raise SpecError(f"stage {i + 1}: {error}") from None
            stages.append(Stage(goal, tuple(n.strip() for n in m[3].split(","))))
        return ChainSpec(tuple(stages), serial, threads, mask)

    @staticmethod
    def parse(text: str) -> ChainSpec:
        """Reads what `str` printed. Raises SpecError saying what is wrong."""
        t = text.strip()
        end = _END.fullmatch(t[len(FUNCTION) + 1 : -1]) if is_chain(t) and t.endswith(")") else None
        if end is None:
            raise SpecError(f"cannot read the Spec '{excerpt(t)}': expected {FUNCTION}(stage | stage | ..., serial)")
        threads = int(end[2].split()[1]) if " " in end[2].strip() else 0
        return ChainSpec.of_lines(end[1].split("|"), end[2] == "serial", threads)


def is_chain(text: str) -> bool:
    """Whether the text of a Spec is that of a chain."""
    return text.strip().startswith(FUNCTION + "(")


def _check_goal(stage: Stage) -> None:
    goal = stage.goal
    if isinstance(goal, Spec):
        if goal.function != "Matmul":
            raise SpecError(f"a contraction that overwrites its output, not {goal.function}")
        count = 2 + (len(goal.then.extras) if goal.then else 0)
        if len(stage.reads) != count:
            raise SpecError(f"it reads {count} operands, not {len(stage.reads)}")
        if any(t.memory != "GL" or t.layout.is_packed or t.const or t.window for t in goal.operands) or _is_part(goal):
            raise SpecError("operands are in GL, as they lie, and nothing is limited")
    else:
        if len(goal.dims) < 3 or any(goal.scan[:-1]) or len(goal.body.outputs) != 1:
            raise SpecError("a nest of three dims or more, all but the last parallel, with one output")
        if len(goal.dims) > 3 and 1 in goal.dims[:-2]:
            raise SpecError("b is several dims of a nest only where each has more than one element")
        if len(stage.reads) != len(goal.inputs):
            raise SpecError(f"it reads {len(goal.inputs)} operands, not {len(stage.reads)}")
        if any(o.memory != "GL" or o.alias is not None for o in goal.operands):
            raise SpecError("operands are in GL, and share no memory")
    if not goal.serial:
        raise SpecError("the threads are those of the chain")


def _is_part(goal: Spec) -> bool:
    """Whether it is what a schedule left of a goal."""
    return bool(goal.limits) or goal.far or goal.forked


def is_dense(goal: Spec, i: int) -> bool:
    """Whether operand `i` of a contraction lies row by row without gaps."""
    t = goal.operands[i]
    return str(t.layout) == str(t.layout.permutation((0, 1, 2))) and t.row_stride is None and t.unit


def is_contiguous(goal: Spec, i: int) -> bool:
    """Whether input `i` of a contraction lies without gaps, the matrices of all b one after the other."""
    t = goal.operands[i]
    orders = [t.layout.permutation(order) for order in ((0, 1, 2), (0, 2, 1))]
    return str(t.layout) in map(str, orders) and t.row_stride is None and t.unit and t.window is None


def _strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of a dense tensor, as nests step through it: not at all along dims of one element."""
    return tuple(s if n > 1 else 0 for s, n in zip(dense_strides(shape), shape, strict=True))


def _bytes(goal: Spec | NestSpec, i: int) -> int:
    """Of what number `i` of a stage's reads is; of the output, where it has no such number."""
    if isinstance(goal, Spec):
        if goal.then and 2 <= i < 2 + len(goal.then.extras):
            extra = goal.then.extras[i - 2]
            return math.prod(goal.size(d) for d in extra.dims) * dtype_bytes(extra.dtype)
        i = min(i, 2)
        t = goal.operands[i]
        return t.layout.volume(goal.operand_shape(i)) * dtype_bytes(t.dtype)
    return goal.operands[i].elements(goal.dims) * element_bytes(goal.operands[i].dtype)
