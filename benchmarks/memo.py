"""The memo: what it costs to keep every Spec's optimum, and how long a fresh process takes to read one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from morello_mlir.memo.coordinates import parse_key
from morello_mlir.memo.manage import statistics
from morello_mlir.memo.memo import Layer
from morello_mlir.memo.record import PLAIN_BYTES
from morello_mlir.memo.store import Store
from morello_mlir.memo.table import count_specs
from morello_mlir.memo.variants import tables_of
from morello_mlir.spec import dtype_bytes
from morello_mlir.targets import Target, get_target

#: All sizes of the scale up to here.
MAX_SIZE = 1024
#: Specs of one batch of look-ups.
BATCH = 10_000

_WARM = """
import json, sys, time
from morello_mlir.search.solve import search_for
import morello_mlir.memo.memo
from morello_mlir.spec import matmul_spec
from morello_mlir.targets import get_target
m, k, n = map(int, sys.argv[1:4])
target = get_target(sys.argv[4])
start = time.perf_counter()
found = search_for(target).solve(matmul_spec(m, k, n))
print(json.dumps({"source": found.source, "ms": 1e3 * (time.perf_counter() - start)}))
"""


def run(target: str, rounds: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "MORELLO_MEMO": str(Path(folder) / "memo.sqlite")}
        return [_storage(target, env), _batch(target, env), *_warm(target, rounds, env)]


def _storage(target: str, env: dict[str, str]) -> dict[str, Any]:
    """Every table that f32 contractions of the scale up to MAX_SIZE with row-major operands lead to, packed."""
    layouts = "row_major:row_major"
    morello = [sys.executable, "-m", "morello_mlir.tools.main"]
    fill = ["precompute", "--tables", "--max-size", str(MAX_SIZE), "--layouts", layouts, "--targets", target]
    print(subprocess.run([*morello, *fill], env=env, capture_output=True, text=True, check=True).stdout, end="")
    print(subprocess.run([*morello, "memo", "pack"], env=env, capture_output=True, text=True, check=True).stdout)
    store = Store(Path(env["MORELLO_MEMO"]), writable=False)
    found = statistics(store)
    print(f"one record a Spec: {PLAIN_BYTES} bytes (table u32, 3 sizes u16, 3 limits u16, action u16, cost f64)\n")
    print("| table | records | Specs | boxes | bytes | one record each | ratio |\n|---|---|---|---|---|---|---|")
    _row("all (bytes of the file)", found["all"])
    for memories, part in sorted(_by_memories(found["tables"]).items()):
        _row(memories, part)
    narrow = _specs_of_contiguous_strides(store, get_target(target)) * PLAIN_BYTES
    print(f"\nwith the row stride classes of contiguous operands alone: {narrow / PLAIN_BYTES:.3g} Specs, "
          f"ratio {narrow / found['all']['bytes']:.3g}\n", flush=True)  # fmt: skip
    ratio = narrow / found["all"]["bytes"]
    return {"storage": found["all"], "tables": found["tables"], "ratio_of_contiguous_strides": ratio}


def _specs_of_contiguous_strides(store: Store, target: Target) -> int:
    """Specs covered, of those whose row strides are of a class that a contiguous operand up to MAX_SIZE has."""
    specs = 0
    for row in store.rows():
        for record in tables_of(row.record()):
            known = record.boxes.actions() >= 0
            specs += count_specs(parse_key(record.key), record.sizes, known, target, MAX_SIZE * dtype_bytes("f32"))
    return specs


def _batch(target: str, env: dict[str, str]) -> dict[str, Any]:
    """Look-ups of many Specs at once, in memory: the actions at random points of the largest records."""
    layer = Layer(Store(Path(env["MORELLO_MEMO"]), writable=False), "memo", get_target(target))
    rows = sorted(layer.store.rows(), key=lambda r: -r.boxes)[:10]
    rng, spent, count = np.random.default_rng(0), 0.0, 0
    for row in rows:
        record = next(tables_of(row.record()))
        key = parse_key(record.key)
        columns = [rng.choice(axis, BATCH) for axis in record.sizes] + [rng.integers(0, record.limits, BATCH)]
        points = np.stack(columns, 1)
        layer.actions_at(key, points[:1])  # reads the record and lays out its grid
        start = time.perf_counter()
        layer.actions_at(key, points)
        spent += time.perf_counter() - start
        count += len(points)
    micros = 1e6 * spent / count
    print(f"\none Spec in memory, in batches of {BATCH}: {micros:.2f} us\n", flush=True)
    return {"batch": BATCH, "us": micros}


def _by_memories(tables: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tables added up by where the operands are."""
    out: dict[str, dict[str, Any]] = {}
    for table in tables:
        memories = ", ".join(part.split()[0] for part in table["table"].split("; ")[2:5])
        part = out.setdefault(memories, dict.fromkeys(("records", "specs_covered", "boxes", "bytes"), 0))
        for name in part:
            part[name] += table[name]
    for part in out.values():
        part["bytes_one_record_each"] = PLAIN_BYTES * part["specs_covered"]
        part["ratio"] = part["bytes_one_record_each"] / part["bytes"]
    return out


def _row(name: str, f: dict[str, Any]) -> None:
    print(
        f"| {name} | {f['records']} | {f['specs_covered']:.3g} | {f['boxes']} | {f['bytes']} "
        f"| {f['bytes_one_record_each']:.3g} | {f['ratio']:.3g} |"
    )


def _warm(target: str, rounds: int, env: dict[str, str]) -> list[dict[str, Any]]:
    """Reading one schedule in a fresh process, beyond imports: from the user's file, and, where there is none, from the
    shipped memo. A goal that has to be searched for says so."""
    out = []
    print("| f32 shape | memo | look-up ms, beyond imports (best of all rounds) |\n|---|---|---|")
    for shape in ((64, 64, 64), (512, 512, 512), (2048, 2048, 2048)):
        for memo in ("user", "fresh"):
            command = [sys.executable, "-c", _WARM, *map(str, shape), target]
            got = []
            for i in range(max(3, rounds // 3)):
                there = env if memo == "user" else {**env, "MORELLO_MEMO": f"{env['MORELLO_MEMO']}.{i}-{shape[0]}"}
                done = subprocess.run(command, env=there, capture_output=True, text=True, check=True)
                got.append(json.loads(done.stdout))
            best = min(got, key=lambda g: g["ms"])
            out.append({"shape": shape, "memo": memo, **best})
            print(f"| {'x'.join(map(str, shape))} | {best['source']} | {best['ms']:.1f} |", flush=True)
    return out
