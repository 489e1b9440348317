"""Where the time of a program goes: what is counted, and how often; how long is not asked."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import morello_mlir
from morello_mlir.errors import InputError

#: A product, in a loop another one, and an op that is left to upstream: it asserts something about what a table holds.
TEXT = """
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: memref<8x8xf32>, %at: memref<8xi32>, %y: memref<8x8xf32>, %z: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  linalg.fill ins(%zero : f32) outs(%y : memref<8x8xf32>)
  linalg.matmul ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  scf.for %i = %c0 to %c3 step %c1 {
    linalg.exp ins(%y : memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : memref<8xi32>) outs(%z : memref<8x8xf32>) {
  ^bb0(%n: i32, %o: f32):
    %k = arith.index_cast %n : i32 to index
    %j = linalg.index 1 : index
    %r = memref.load %y[%j, %k] : memref<8x8xf32>
    %positive = arith.cmpf oge, %r, %zero : f32
    cf.assert %positive, "negative"
    linalg.yield %r : f32
  }
  return
}
"""


@pytest.fixture
def arguments():
    x = np.full((8, 8), 0.01, np.float32)
    return x, np.arange(8, dtype=np.int32)[::-1].copy(), np.empty_like(x), np.empty_like(x)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_counted(arguments, threads):
    module = morello_mlir.compile(TEXT, target="avx2", threads=threads, memo="off")
    profile = module.profile(*arguments, seconds=0.01)
    assert profile.seconds > 0
    times = {(part.kind, part.name.partition("(")[0]): part.times for part in profile.parts}
    assert times == {("goal", "Matmul"): 1, ("goal", "Map"): 3, ("upstream", "linalg.generic"): 1}
    assert 0 < profile.share() < 1 and 0 < profile.share("upstream") < 1
    assert sum(profile.share(kind) for kind in ("goal", "upstream", "copy", "memory")) <= 1.001
    text = str(profile)
    assert "in code of ours" in text and "lowered by upstream" in text and "Matmul([" in text


def test_the_program_is_as_it_was(arguments):
    """What is counted is another program; both compute the same."""
    module = morello_mlir.compile(TEXT, target="avx2", threads=1, memo="off")
    x, at, y, z = arguments
    module.f(x, at, y, z)
    wanted = z.copy()
    z[:] = 0
    module.profile(x, at, y, z, seconds=0)
    np.testing.assert_array_equal(z, wanted)
    assert len(module.specs) == 2 and "readcyclecounter" not in module.emit("llvm")


def test_without_our_passes(arguments):
    profile = morello_mlir.compile(TEXT, optimize=False).profile(*arguments, seconds=0)
    assert profile.share() == 0 and {part.kind for part in profile.parts} == {"upstream"}


def test_of_one_function_only(arguments):
    two = TEXT + TEXT.partition("func.func @f")[1].join(["", TEXT.partition("func.func @f")[2]]).replace("@f", "@g")
    with pytest.raises(InputError, match="functions"):
        morello_mlir.compile(two).profile(*arguments)


def test_on_the_command_line(tmp_path):
    (tmp_path / "m.mlir").write_text(TEXT)
    command = [sys.executable, "-m", "morello_mlir.tools.run", str(tmp_path / "m.mlir"), "--args", "zeros", "--profile"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "in code of ours" in done.stdout
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    profile = json.loads(done.stdout)["profile"]
    assert profile["seconds"] > 0 and {part["kind"] for part in profile["parts"]} == {"goal", "upstream"}
    done = subprocess.run([*command, "--emit", "llvm"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--profile need a run" in done.stderr
