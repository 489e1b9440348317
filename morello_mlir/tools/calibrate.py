"""`morello calibrate`: measures this machine and fits the cost model to it; or reports how well the model fits."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..targets import TARGETS, Target, called, exact, get_target, refusal, this_host
from ..targets.calibration import Calibration, path_of, store
from ._progress import now_and_then

if TYPE_CHECKING:
    from ..calibration.calibrate import Effort, Progress, Quality
    from ..calibration.measure import SpecMeasurements

#: Reports sample other schedules than calibrations are fitted to.
REPORT_SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer shapes and schedules: half a minute, not minutes")
    parser.add_argument("--report", action="store_true",
                        help="do not calibrate: show predicted against measured times of random schedules, with rank "
                        "correlation and the regret of the chosen schedule, for the target as it is now")  # fmt: skip
    parser.add_argument("--target", default="host", metavar="NAME",
                        help="the target to refine: avx2 or avx512 (default: the widest that runs here)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random schedules (default: 0)")
    parser.add_argument("--schedules", action="store_true", help="with --report: list every schedule")
    parser.add_argument("--remove", action="store_true", help="do not calibrate: forget this machine's calibration")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path,
                        help="store there instead of in the user's configuration")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")


def run(options: argparse.Namespace) -> int:
    from ..calibration.calibrate import QUICK, QUICK_REPORT, REPORT, Effort

    if options.report and (options.remove or options.output):
        raise InputError("--report stores and removes nothing: it does not go with --remove or -o")
    if not options.remove:
        _warn_if_busy()
    if options.report:
        return _report(options, QUICK_REPORT if options.quick else REPORT)
    base = _base(options.target)
    path = options.output or path_of(this_host().machine_key, base.name)
    if path is None:
        raise InputError("calibrations are off (MORELLO_CALIBRATION=off): name a file with -o")
    return _remove(path) if options.remove else _calibrate(options, base, QUICK if options.quick else Effort(), path)


def _warn_if_busy() -> None:
    """Timing beside other work finds coefficients of both."""
    try:
        busy = os.getloadavg()[0]
    except OSError:
        return
    if busy > 0.75 * (os.cpu_count() or 1):
        print(f"warning: this machine is busy (load {busy:.1f}): measure again when it is not", file=sys.stderr)


def _base(name: str) -> Target:
    """The named target that is refined. Raises InputError for one that does not run here."""
    base = exact(this_host()) if name == "host" else TARGETS.get(name)
    if base is None:
        raise InputError(f"only {' and '.join(TARGETS)} are calibrated, not '{name}'")
    _must_run(base)
    return base


def _must_run(target: Target) -> None:
    refused = refusal(target)
    if refused is not None:
        raise refused


def _remove(path: Path) -> int:
    try:
        path.unlink()
    except FileNotFoundError:
        raise InputError(f"there is no calibration at {path}") from None
    except OSError as error:
        raise InputError(f"cannot remove {path}: {error.strerror}") from error
    print(f"removed {path}")
    return 0


def _calibrate(options: argparse.Namespace, base: Target, effort: Effort, path: Path) -> int:
    from ..calibration.calibrate import calibrate

    with _progress() as progress:
        made, _ = calibrate(base, this_host().machine_key, effort, options.seed, progress)
    better = made.report["correlation"] > made.report["correlation_before"]
    if better:
        try:
            store(made, path)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from error
    _print_calibration(options, made, path if better else None)
    return 0


def _print_calibration(options: argparse.Namespace, made: Calibration, path: Path | None) -> None:
    if options.json:
        print(json.dumps({"target": made.base, "stored": str(path) if path else None, **made.report}, indent=2))
        return
    figures = made.report
    print(
        f"{made.base} on {made.machine}: {figures['schedules']} schedules, mean rank correlation "
        f"{figures['correlation_before']:.3f} before and {figures['correlation']:.3f} after fitting"
    )
    print(f"stored in {path}" if path else "not stored: the target as it is predicts this machine as well")


# ---------------------------------------------------------------- reports


def _report(options: argparse.Namespace, effort: Effort) -> int:
    from ..calibration.calibrate import assess

    target = get_target(options.target)
    _must_run(target)
    rows: list[Quality] = []
    lists: list[str] = []
    with _progress() as progress:
        for shape in effort.shapes:
            quality, measured = assess(target, shape, effort, options.seed + REPORT_SEED, progress)
            rows.append(quality)
            lists.append(_schedule_list(measured, target))
    summary = {
        "target": called(target),
        "schedules": sum(r.schedules for r in rows),
        "correlation": round(statistics.fmean(r.correlation for r in rows), 3),
        "regret": round(statistics.median(r.regret for r in rows), 4),
    }
    if options.json:
        print(json.dumps({**summary, "shapes": [r.record() for r in rows]}, indent=2))
        return 0
    print(quality_table(rows))
    print(
        f"\n{summary['target']}: {summary['schedules']} schedules; "
        f"rank correlation {summary['correlation']:.3f} (mean), regret {summary['regret']:.1%} (median)"
    )
    if options.schedules:
        print("\n" + "\n\n".join(lists))
    return 0


def quality_table(rows: list[Quality]) -> str:
    """Markdown."""
    lines = ["| shape | schedules | rank correlation | regret |", "|---|---|---|---|"]
    for row in rows:
        label = "x".join(map(str, row.shape))
        lines.append(f"| {label} | {row.schedules} | {row.correlation:.2f} | {row.regret:+.1%} |")
    return "\n".join(lines)


def _schedule_list(measured: SpecMeasurements, target: Target) -> str:
    """Every schedule, fastest first: cycles measured and predicted, as multiples of the bare multiply-adds."""
    from ..calibration.fit import peak_cycles, predict
    from ..calibration.recipe import text

    peak = peak_cycles(measured.spec, target)
    p = predict(measured, target)
    lines = [str(measured.spec), "measured  predicted  (times the multiply-adds)"]
    for i in p.measured.argsort():
        recipe = text(measured.samples[i].sample.recipe)
        lines.append(f"{p.measured[i] / peak:8.2f}  {p.predicted[i] / peak:9.2f}  {recipe}")
    return "\n".join(lines)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, elsewhere a line now and then."""
    if not sys.stderr.isatty():
        now = "compiling what measures"

        def note(what: str, done: int, total: int) -> None:
            nonlocal now
            now = f"{what}: {done} of {total}"

        with now_and_then(lambda: now):
            yield note
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task: Any = bar.add_task("")

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield tell
