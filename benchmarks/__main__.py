"""`python -m benchmarks [FAMILY ...]`: run workload families and print their tables; without a name, all of them.

`python -m benchmarks peers [OPTIONS]` compares with every installed library.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

FAMILIES = {
    "contractions": "f32 and f64 contractions beside numpy's BLAS",
    "conv": "convolutions of networks beside the installed libraries",
    "dtypes": "bf16 and bytes: operations a second beside f32, and bytes beside reading memory",
    "model": "the cost model: rank correlation and regret over random schedules",
    "fused": "attention, products of products, layers of perceptrons beside the installed libraries",
    "forms": "whether the search picks the fastest form of softmax",
    "streaming": "softmax, layer normalisation, reductions and elementwise chains beside every installed library",
    "transposes": "transposes beside torch and numpy, and beside the fastest of the cheapest schedules",
    "compile_time": "what a user waits for: import, cold search, compilation",
    "models": "whole networks beside torch and torch.compile; needs torch",
    "memo": "bytes per Spec of the memo, and what a warm look-up takes",
}
#: Those whose rows have names, in `labels()`.
LABELLED = ("conv", "forms", "fused", "streaming", "transposes")
#: Has options of its own: `python -m benchmarks peers --help`.
PEERS = "peers"


def main() -> None:
    if sys.argv[1:2] == [PEERS]:
        from .peers import command

        sys.exit(command.main(sys.argv[2:], _host("host")))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = f"{', '.join(FAMILIES)}; {PEERS} stands alone and has options of its own"
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=names)
    parser.add_argument("--target", default="host", help="the machine: host, avx2, avx512, or a CPU")
    parser.add_argument(
        "--threads", type=int, help="of contractions, conv, fused, streaming, transposes (1) and models (1, then 2)"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help=f"only rows of {', '.join(LABELLED)} whose names contain it"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, help="of the random schedules of model (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure there")
    options = parser.parse_args()
    unknown = [f for f in options.families if f not in FAMILIES]
    if unknown:
        parser.error(f"unknown family '{unknown[0]}' (have {', '.join(FAMILIES)})")
    families = _with_rows(parser, options) if options.only else options.families or list(FAMILIES)
    _same_instructions(options.target)
    report = {"host": _host(options.target)}
    print("\n".join(f"{k}: {v}" for k, v in report["host"].items()))
    for family in families:
        print(f"\n## {family}: {FAMILIES[family]}\n", flush=True)
        defaults = {"contractions": 1, "conv": 1, "fused": 1, "models": 0, "streaming": 1, "transposes": 1}
        more = {"threads": options.threads or defaults[family]} if family in defaults else {}
        more |= {"only": options.only} if family in LABELLED else {}
        more |= {"seed": options.seed} if family == "model" and options.seed is not None else {}
        report[family] = importlib.import_module(f"benchmarks.{family}").run(options.target, options.rounds, **more)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _with_rows(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    """The families that are asked for, with a row that is. Ends the process with status 2 where there is none."""
    families = options.families or list(LABELLED)
    for family in families:
        if family not in LABELLED:
            parser.error(f"--only is for rows of {', '.join(LABELLED)}: those of {family} have no names")
    rows = {family: importlib.import_module(f"benchmarks.{family}").labels() for family in families}
    found = [family for family in families if any(options.only in label for label in rows[family])]
    if not found:
        known = "\n".join(f"{family}: {label}" for family, labels in rows.items() for label in labels)
        parser.error(f"no row contains '{options.only}'; there are\n{known}")
    return found


def _same_instructions(target: str) -> None:
    """Peers are to use the instruction set that we use: OpenBLAS reads its choice when it is loaded, so start anew."""
    wanted = {"avx2": "Haswell"}.get(target)
    if wanted and os.environ.get("OPENBLAS_CORETYPE") != wanted:
        os.environ["OPENBLAS_CORETYPE"] = wanted
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])


def _host(target: str) -> dict[str, str]:
    import numpy

    from morello_mlir.targets import called, get_target
    from morello_mlir.tools.bench import numpy_blas

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "date": subprocess.run(["date", "-I"], capture_output=True, text=True, check=False).stdout.strip(),
        "commit": commit.stdout.strip() or "unknown",
        "cpu": _cpu(),
        "target": called(get_target(target)),
        "numpy": f"{numpy.__version__}, {numpy_blas()}",
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {k.strip(): v.strip() for k, v in found.items()}
    return f"{fields.get('model name')}, family {fields.get('cpu family')} model {fields.get('model')}"


if __name__ == "__main__":
    main()
