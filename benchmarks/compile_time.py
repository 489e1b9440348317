"""What a user waits for, each in a fresh process: importing, the cold search without a memo, the first one of a fresh
install (a new memo file, and what is shipped), and compiling once the search is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHAPES = ((64, 64, 64), (512, 512, 512), (1000, 1000, 1000), (2048, 2048, 2048), (1, 2048, 2048))

_IMPORT = """
import time; t = time.perf_counter(); import morello_mlir; print(time.perf_counter() - t)
"""

_COMPILE = """
import json, resource, sys, time
import morello_mlir
from morello_mlir.tools.bench import Workload
m, k, n, target = *map(int, sys.argv[1:4]), sys.argv[4]
text = Workload(m, k, n).mlir()
morello_mlir.compile("func.func @f(%x: f32) -> f32 { return %x : f32 }")  # loads MLIR and LLVM
compiled = morello_mlir.compile(text, target=target, cache=False, threads=1)
first, source = compiled.times, compiled.specs[0]["source"]
again = morello_mlir.compile(text, target=target, cache=False, threads=1).times
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"first": first, "source": source, "again": again, "peak_gb": peak}))
"""


def run(target: str, rounds: int) -> list[dict[str, Any]]:
    def child(code: str, *args: Any, memo: str = "off") -> str:
        command = [sys.executable, "-c", code, *map(str, args)]
        here = {**os.environ, "MORELLO_MEMO": memo}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=here).stdout

    imports = sorted(float(child(_IMPORT)) for _ in range(max(3, rounds // 3)))
    print(f"import morello_mlir: {1e3 * imports[len(imports) // 2]:.0f} ms\n")
    print("| f32 shape | cold search s | fresh install ms | search again ms | lift + apply + LLVM ms | peak GB |")
    print("|---|---|---|---|---|---|")
    out: list[dict[str, Any]] = [{"import_s": imports}]
    for shape in SHAPES:
        child(_COMPILE, *shape, target)  # the search's own kernels are compiled once per installation
        got = json.loads(child(_COMPILE, *shape, target))
        with tempfile.TemporaryDirectory() as folder:
            fresh = json.loads(child(_COMPILE, *shape, target, memo=str(Path(folder) / "memo.sqlite")))
        out.append({"shape": shape, **got, "fresh": fresh})
        rest = sum(got["again"][part] for part in ("lift_s", "apply_s", "llvm_s"))
        print(
            f"| {'x'.join(map(str, shape))} | {got['first']['search_s']:.2f} "
            f"| {1e3 * fresh['first']['search_s']:.0f} ({fresh['source']}) | {1e3 * got['again']['search_s']:.1f} "
            f"| {1e3 * rest:.0f} | {got['peak_gb']:.2f} |",
            flush=True,
        )
    return out
