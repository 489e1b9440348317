"""`morello memo`: what is in a memo, whether it is right, and moving it about."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..targets import CPUS, TARGETS, get_target

if TYPE_CHECKING:
    from ..memo.answers import Answer
    from ..memo.record import Row
    from ..memo.store import Store
    from ..memo.winners import Winner


_SHIPPED = "the memo that the package ships for it (host, avx2, avx512 or a CPU)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(help_text=parser.format_help)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")

    def add(name: str, help: str) -> argparse.ArgumentParser:
        sub = actions.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        sub.add_argument("--memo", metavar="FILE", help="the memo (default: MORELLO_MEMO, else the user's file)")
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        return sub

    stats = add("stats", "print what is in a memo, and the hit rate of the last runs")
    stats.add_argument("--tables", action="store_true", help="also one line a table")
    stats.add_argument("--plot", type=Path, metavar="FILE", help="draw Specs and boxes per table (svg, or png)")
    stats.add_argument("--shipped", metavar="TARGET", help=_SHIPPED)
    verify = add("verify", "read every record and winner and compare a sample with a fresh search")
    verify.add_argument("--sample", type=int, default=10, metavar="N", help="Specs to search anew (default: 10)")
    verify.add_argument("--seed", type=int, default=0, metavar="N", help="choose another sample")
    verify.add_argument("--shipped", metavar="TARGET", help=_SHIPPED)
    merge = add("merge", "add the records, winners and answers of other memos")
    merge.add_argument("files", nargs="+", type=Path, metavar="FILE")
    export = add("export", "write a part of a memo to a new file")
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument("--target", metavar="NAME", help="only what is for this target; avx2, avx512: for its CPUs too")
    export.add_argument(
        "--match", default="", metavar="TEXT", help="only tables whose key, winners whose Spec contains this"
    )
    export.add_argument("--max-boxes", type=int, default=None, metavar="N", help="only tables with so many boxes")
    bring = add("import", "add what another memo has for the targets of this installation as they are now")
    bring.add_argument("file", type=Path, metavar="FILE")
    add("pack", "compress every record again, trying all orders of the axes")


def run(options: argparse.Namespace) -> int:
    handlers = {
        "stats": _stats,
        "verify": _verify,
        "merge": _merge,
        "export": _export,
        "import": _import,
        "pack": _pack,
    }
    return handlers[options.action](options)


def _store(options: argparse.Namespace, *, writable: bool) -> Store:
    """The memo that the options name. Raises InputError where there is none."""
    from ..memo.locate import shipped_path, user_path
    from ..memo.store import Store
    from ..search.solve import keep_memos

    keep_memos()
    if getattr(options, "shipped", None):
        path: Path | None = shipped_path(get_target(options.shipped))
        writable = False
    else:
        path = user_path(options.memo)
    if path is None:
        raise InputError("the memo is off: name a file with --memo")
    if options.action == "stats" and not options.memo and not path.is_file():
        return Store(path, writable=False)
    receives = options.action in ("merge", "import")
    if not path.is_file() and not receives:
        raise InputError(f"there is no memo at {path}")
    if not writable or options.action == "pack":
        return _readable(path, writable)
    # Those that write make the best of a damaged file, and say so.
    store = Store(path)
    if not store.is_readable or (receives and not store.writable):
        raise InputError(f"{path} is no memo that can be {'written' if receives else 'read'}")
    return store


def _readable(path: Path, writable: bool = False) -> Store:
    """The memo at `path`. Raises InputError where there is none that can be read."""
    from ..memo.store import Store

    if not path.is_file():
        raise InputError(f"there is no memo at {path}")
    store = Store(path, writable=False)
    if not store.is_readable:
        raise InputError(f"{path} is no memo that can be read")
    return Store(path) if writable else store


def _print(options: argparse.Namespace, result: dict[str, Any], *lines: str) -> None:
    print(json.dumps(result, indent=2) if options.json else "\n".join(lines))


# ---------------------------------------------------------------- actions


def _stats(options: argparse.Namespace) -> int:
    from ..memo.answers import Answers
    from ..memo.manage import statistics

    store = _store(options, writable=False)
    report = {**statistics(store), "answers": sum(1 for _ in Answers(store).rows())}
    names = _names_of_spaces()
    for part in (*report["spaces"], *report["tables"]):
        part["cpu"] = names.get(part["space"], part["target"])
    if not options.shipped:
        report["shipped"] = [_shipped(name) for name in TARGETS]
    if options.plot:
        from ..memo.plot import plot

        plot(report, options.plot)
    _print(options, report, *_stats_lines(report, options.tables))
    return 0


def _shipped(name: str) -> dict[str, Any]:
    """What the package ships for a base target, and whether it is for all that it should answer, as they are now."""
    from ..memo.locate import PACKAGED, shipped_path, shipped_targets
    from ..memo.manage import statistics
    from ..memo.store import Store
    from ..memo.version import space_of

    path = shipped_path(TARGETS[name])
    if not path.is_file():
        return {"target": name, "path": str(path), "current": False, "state": "missing"}
    found = statistics(Store(path, writable=False))
    there = {s["space"] for s in found["spaces"]}
    wanted = {n: space_of(t) for n, t in shipped_targets(name).items()}
    missing = [n for n, space in wanted.items() if space not in there]
    stale = there - set(wanted.values())
    lacking = [n for n in missing if n in PACKAGED]
    if lacking or stale:
        state = f"missing for {', '.join(lacking)}" if lacking else "stale in part"
        state += " (morello precompute --ship rebuilds it)"
    else:
        state = "current" + (f", but for {', '.join(missing)}, whose goals are searched for" if missing else "")
    return {
        "target": name,
        "path": str(path),
        "current": not lacking and not stale,
        "missing": missing,
        "state": state,
        **found["all"],
    }


def _names_of_spaces() -> dict[str, str]:
    """The CPUs that the package has answers for, by their spaces."""
    from ..memo.locate import SHIPPED
    from ..memo.version import space_of

    return {space_of(get_target(name)): name for name in SHIPPED}


def _stats_lines(report: dict[str, Any], tables: bool) -> list[str]:
    head = f"{'records':>8} {'Specs':>10} {'boxes':>10} {'bytes':>12} {'one each':>10} {'ratio':>9}"

    def line(name: str, f: dict[str, Any]) -> str:
        return (
            f"{f['records']:8} {f['specs_covered']:10.3g} {f['boxes']:10} {f['bytes']:12} "
            f"{f['bytes_one_record_each']:10.3g} {f['ratio']:9.3g}  {name}"
        )

    there = "" if Path(report["path"]).is_file() else " (not there yet)"
    out = [f"memo {report['path']}{there}", head, line("all (bytes of the file)", report["all"])]
    for space in report["spaces"]:
        out.append(line(f"{space['cpu']} {space['space']}" + ("" if space["current"] else " (stale)"), space))
        if tables:
            out += [line(f"  {t['table']}; {t['shape']}", t) for t in report["tables"] if t["space"] == space["space"]]
    rate = report["hit_rate"]
    runs = len(report["runs"])
    out.append("hit rate: no runs yet" if rate is None else f"hit rate of the last {runs} runs: {rate:.1%}")
    won = report["winners"]
    out.append(
        f"winners: {won['all']} measured, {won['usable']} for this machine, "
        f"{won['faster']} faster than the model's choice"
    )
    if report["answers"]:
        out.append(f"answers: {report['answers']} for chains, nests and convolutions")
    out += [f"shipped for {s['target']}: {s['state']}" for s in report.get("shipped", [])]
    return out


def _verify(options: argparse.Namespace) -> int:
    from ..chains.answers import check_answers
    from ..memo.manage import verify
    from ..tuning.kinds import check_winner

    if options.sample < 0:
        raise InputError("--sample must not be negative")
    store = _store(options, writable=not options.shipped)
    verdict = verify(store, options.sample, options.seed, check=check_winner)
    before = store.dropped
    answers = check_answers(store)
    damaged = verdict.damaged + store.dropped - before
    wrong = verdict.wrong or []
    result = {
        "records": verdict.records,
        "foreign": verdict.foreign,
        "winners": verdict.winners,
        "answers": answers,
        "damaged": damaged,
        "compared": verdict.compared,
        "wrong": wrong,
    }
    _print(
        options,
        result,
        f"{verdict.records} records and {verdict.winners} winners read, {damaged} damaged and dropped",
        *([f"{answers} answers for whole goals read"] if answers else []),
        *(
            [f"{verdict.foreign} records are for other targets or another version: not compared"]
            if verdict.foreign
            else []
        ),
        f"{verdict.compared} Specs compared with a fresh search, {len(wrong)} wrong",
        *(f"wrong: {spec}" for spec in wrong),
    )
    return 1 if wrong or damaged else 0


def _merge(options: argparse.Namespace) -> int:
    sources = {str(path): _readable(path) for path in options.files}
    store = _store(options, writable=True)
    return _merged(options, {name: _merge_all(store, source) for name, source in sources.items()})


def _merge_all(
    into: Store,
    source: Store,
    wanted: Callable[[Row], bool] = lambda row: True,
    wanted_winner: Callable[[Winner], bool] = lambda winner: True,
    match: str = "",
    wanted_answer: Callable[[Answer], bool] = lambda answer: True,
) -> dict[str, Any]:
    """Records, winners and answers of `source` into `into`: what became of them, by name."""
    from ..memo.answers import merge_answers
    from ..memo.manage import merge, merge_winners

    return {
        **vars(merge(into, source, wanted)),
        "winners": vars(merge_winners(into, source, wanted_winner)),
        "answers": vars(merge_answers(into, source, match, wanted_answer)),
    }


def _import(options: argparse.Namespace) -> int:
    from ..memo.manage import current_spaces

    spaces, source = current_spaces(), _readable(options.file)
    found = _merge_all(
        _store(options, writable=True),
        source,
        lambda r: r.space in spaces,
        lambda w: w.space in spaces,
        # The space of an answer begins with that of records.
        wanted_answer=lambda a: "/".join(a.space.split("/")[:2]) in spaces,
    )
    return _merged(options, {str(options.file): found})


def _merged(options: argparse.Namespace, results: dict[str, dict[str, Any]]) -> int:
    _print(options, results, *(f"{name}: {_merged_text(found)}" for name, found in results.items()))
    return 1 if any(r["conflicts"] for r in results.values()) else 0


def _merged_text(found: dict[str, Any]) -> str:
    """What became of the records, winners and answers of a memo, but for what there were none of."""
    said = []
    for what, counts in (
        ("records", found),
        ("winners", found["winners"]),
        ("answers for whole goals", found["answers"]),
    ):
        here = [f"{counts[how]} {how}" for how in ("added", "known", "damaged") if counts[how]]
        if counts.get("conflicts"):
            here.append(f"{counts['conflicts']} in conflict (kept what was there)")
        if here:
            said.append(f"{what}: {', '.join(here)}")
    return "; ".join(said) or "nothing that was asked for"


def _export(options: argparse.Namespace) -> int:
    from ..memo.precompute import compact
    from ..memo.store import Store

    source = _store(options, writable=False)
    if options.file.exists():
        raise InputError(f"{options.file} exists already: name a new file (morello memo merge adds to one)")

    fingerprints = None if options.target is None else _fingerprints(options.target)

    def is_for_target(space: str, base: str = "") -> bool:
        return fingerprints is None or space.partition("/")[0] in fingerprints or base == options.target

    def wanted(row: Row) -> bool:
        return (
            is_for_target(row.space, row.target)
            and options.match in row.key
            and (options.max_boxes is None or row.boxes <= options.max_boxes)
        )

    def wanted_winner(winner: Winner) -> bool:
        return is_for_target(winner.space, winner.target) and options.match in winner.spec

    target = Store(options.file)
    found = _merge_all(target, source, wanted, wanted_winner, options.match, lambda a: is_for_target(a.space))
    if not target.writable or not options.file.is_file():
        print(f"nothing was written to {options.file}", file=sys.stderr)
        return 1
    target.close()
    compact(options.file)
    return _merged(options, {str(options.file): found})


def _fingerprints(name: str) -> set[str]:
    """Of the target called `name`, and of the CPUs that refine it. Raises InputError."""
    wanted = get_target(name)
    refine = (t for t in map(get_target, CPUS) if t.name == name)
    return {wanted.fingerprint, *(t.fingerprint for t in refine)}


def _pack(options: argparse.Namespace) -> int:
    from ..memo.database import vacuum
    from ..memo.manage import pack
    from ._progress import now_and_then

    store = _store(options, writable=True)
    assert store.path is not None
    size = store.path.stat().st_size
    with now_and_then(lambda: f"packing {store.path}"):
        before, after = pack(store)
        store.close()
        vacuum(store.path)
    now = store.path.stat().st_size
    result = {"boxes_before": before, "boxes": after, "bytes_before": size, "bytes": now}
    _print(options, result, f"{size} bytes became {now} ({before} boxes, now {after})")
    return 0
