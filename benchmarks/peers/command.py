"""`python -m benchmarks peers`: our code beside every installed library, interleaved in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import driver, plot, report
from .adapters import peers
from .adapters.base import ISAS
from .workloads import selected

DEFAULT_ROUNDS, DEFAULT_SECONDS = 9, 0.02


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument("--only", default="", metavar="PART,...", help="rows whose GROUP/SHAPE contains one of these")
    parser.add_argument("--peers", default="", metavar="NAME,...", help="these libraries only (ours always runs)")
    parser.add_argument("--threads", type=int, default=1, help="threads, and CPUs, that each may use (default: 1)")
    limit = "limit all to an instruction set, without matrix tiles (AMX), as far as they listen"
    parser.add_argument("--isa", choices=ISAS, default="native", help=limit)
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS)
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="length of a sample")
    files = "write peers.json, peers.md, peers.log and, of square products, peers.svg there"
    parser.add_argument("--out", type=Path, metavar="DIR", help=files)
    parser.add_argument("--list", action="store_true", help="print the libraries and the rows, and stop")
    return parser


def main(arguments: Sequence[str], host: dict[str, str], window: Any = None) -> int:
    """host: what is known of the machine. window: see `driver.measure`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    known = peers()
    wanted = [name.strip() for name in options.peers.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            parser.error(f"unknown peer '{name}' (have {', '.join(known)})")
    if options.threads < 1 or options.rounds < 1 or options.seconds <= 0:
        parser.error("--threads, --rounds and --seconds must be positive")
    workloads = selected(options.only)
    if not workloads:
        parser.error(f"no row matches '{options.only}' (--list prints them)")
    present = {name: peer.available() for name, peer in known.items()}
    if options.list:
        for name, there in present.items():
            print(f"{name}: {'installed' if there else 'not installed'}")
        print("\n".join(w.key for w in workloads))
        return 0
    if options.out:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--out: cannot make the folder '{options.out}': {error.strerror}")
    chosen = [p for n, p in known.items() if present[n] and (not wanted or n in wanted or n in report._NOT_PEERS)]
    if options.threads > 1:  # those two know one thread
        chosen = [p for p in chosen if p.name not in (report.PEAK, report.READ)]
    about: dict[str, Any] = {**host, "threads": options.threads, "instruction set": options.isa}
    about["not installed"] = ", ".join(n for n, there in present.items() if not there) or "-"
    _compare(options, workloads, chosen, about, window)
    return 0


def _compare(
    options: argparse.Namespace, workloads: Sequence[Any], chosen: Sequence[Any], about: dict[str, Any], window: Any
) -> None:
    """Measures the rows, prints them as they come and a table in the end, and writes files where that is wanted."""
    log = options.out / "peers.log" if options.out else None
    rows: list[report.Row] = []
    kept = {} if window is None else {"window": window}
    missing = about.pop("not installed")
    with driver.running(chosen, options.threads, options.isa, log) as processes:
        print(report.HEAD, flush=True)
        for workload in workloads:
            results = driver.measure(workload, processes, options.rounds, options.seconds, **kept)
            rows.append(report.Row(workload, tuple(results)))
            print(report.line(rows[-1]), flush=True)
        for process in processes:
            about[process.peer.name] = process.ask(driver.SAMPLE_LIMIT, do="about").get("about", "?")
    about["not installed"] = missing
    text = report.markdown(rows, about)
    print("\n" + text)
    if options.out:
        (options.out / "peers.md").write_text(text, encoding="utf-8")
        record = {"about": about, "rows": [row.record() for row in rows]}
        (options.out / "peers.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if why := plot.plot(rows, options.out / "peers.svg"):
            # One of an earlier run would be taken for a picture of this one.
            (options.out / "peers.svg").unlink(missing_ok=True)
            print(f"no peers.svg: {why}", file=sys.stderr)
