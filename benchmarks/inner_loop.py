"""The inner loop of a chosen kernel: its instructions, and what llvm-mca says of it.

    python -m benchmarks.inner_loop [--shape 512x512x512] [CPU ...]

Prints, for each CPU, how close the loop comes to the peak of two fused multiply-adds a cycle on llvm-mca's model of the
machine, and whether it touches the stack. Runs anywhere: nothing is executed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

CPUS = ("znver4", "sapphirerapids")
#: llvm-mca simulates this many iterations: enough that filling the pipeline does not show.
ITERATIONS = 400
_LABEL = re.compile(r"^([.\w]+):")
_JUMP = re.compile(r"^\s+j\w+\s+([.\w]+)")
_FMA = re.compile(r"^\s+vfn?m(?:add|sub)\d+[ps][sd]\s")
_TILE = re.compile(r"broadcast_fma_(\d+)x(\d+)")
_STACK = re.compile(r"\(%r[sb]p\b")


@dataclass(frozen=True)
class Loop:
    """A loop of one block. lines: its instructions, AT&T syntax, the jump back last."""

    function: str
    lines: tuple[str, ...]

    @property
    def fmas(self) -> int:
        return sum(bool(_FMA.match(line)) for line in self.lines)

    @property
    def wide_fmas(self) -> int:
        """Those on 64-byte vectors."""
        return sum(bool(_FMA.match(line)) and "%zmm" in line for line in self.lines)

    @property
    def stack_accesses(self) -> tuple[str, ...]:
        """Instructions that read or write the stack: spills."""
        return tuple(line.strip() for line in self.lines if _STACK.search(line))


def loops(assembly: str) -> list[Loop]:
    """Every loop of one block in the text of an assembly file."""
    out: list[Loop] = []
    function, label, block = "", "", []
    for line in assembly.splitlines():
        code = line.split("#", 1)[0].rstrip()
        if match := _LABEL.match(code):
            label, block = match[1], []
            function = label if not label.startswith(".") else function
        elif code.startswith("\t") and not code.lstrip().startswith("."):
            block.append(code)
            jump = _JUMP.match(code)
            if jump:
                if jump[1] == label:
                    out.append(Loop(function, tuple(block)))
                label, block = "", []
    return out


def inner_loop(assembly: str) -> Loop:
    """The loop of the kernel with the largest register tile: the others are for remainders."""

    def size(loop: Loop) -> tuple[int, int]:
        tile = _TILE.search(loop.function)
        return (int(tile[1]) * int(tile[2]) if tile else 0, loop.fmas)

    return max(loops(assembly), key=size)


def chosen_assembly(shape: tuple[int, int, int], cpu: str) -> str:
    """The code of a matrix product for a CPU, as `morello_mlir.compile` makes it."""
    import morello_mlir
    from morello_mlir.tools.bench import Workload

    text = morello_mlir.compile(Workload(*shape).mlir(), target=cpu, memo="off", threads=1).emit("asm")
    assert isinstance(text, str)
    return text


@lru_cache(maxsize=1)
def tool() -> Path:
    """llvm-mca, from the LLVM tools that the package depends on."""
    import llvm

    return Path(next(iter(llvm.__path__))) / "bin" / "llvm-mca"


def cycles_per_iteration(loop: Loop, cpu: str) -> float:
    """Cycles of one iteration on llvm-mca's model of `cpu`."""
    # Every jump is taken: what follows it is the loop again.
    text = "\n".join(loop.lines)
    run = subprocess.run(
        [tool(), "-mtriple=x86_64", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-"],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    match = re.search(r"^Total Cycles:\s+(\d+)", run.stdout, re.M)
    assert match, run.stdout
    return int(match[1]) / ITERATIONS


def share_of_peak(loop: Loop, cpu: str) -> float:
    """Of the peak of wide multiply-adds on llvm-mca's model, which is measured in the same way: a loop of nothing else.

    Zen 4 starts one of 64 bytes a cycle, Sapphire Rapids two.
    """
    bare = tuple(f"\tvfmadd231ps\t%zmm30, %zmm31, %zmm{i}" for i in range(16))
    peak = cycles_per_iteration(Loop("peak", bare), cpu) / len(bare)
    return loop.fmas * peak / cycles_per_iteration(loop, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cpus", nargs="*", default=CPUS, metavar="CPU")
    parser.add_argument("--shape", default="512x512x512", metavar="MxKxN")
    parser.add_argument("--show", action="store_true", help="print the loop as well")
    options = parser.parse_args()
    m, k, n = (int(x) for x in options.shape.split("x"))
    for cpu in options.cpus:
        loop = inner_loop(chosen_assembly((m, k, n), cpu))
        print(
            f"{cpu}, {loop.function}: {loop.fmas} multiply-adds ({loop.wide_fmas} of 64 bytes) in {len(loop.lines)} "
            f"instructions, {len(loop.stack_accesses)} on the stack; {share_of_peak(loop, cpu):.1%} of the peak"
        )
        if options.show:
            print("\n".join(loop.lines))


if __name__ == "__main__":
    main()
