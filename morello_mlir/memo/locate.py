"""Where memos are: the user's file, and the ones that the package ships."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ..targets import Target, get_target
from .store import Store

#: Targets for which the package has answers of all kinds. Each stands for all planned for alike.
PACKAGED = ("znver5", "sapphirerapids", "znver4", "avx2")
#: Those for which it has some: `morello precompute --ship` makes them in this order.
SHIPPED = (*PACKAGED, "alderlake", "haswell", "icelake-server", "skylake-avx512")
#: What `MORELLO_MEMO`, `memo=` and the pass option call no memo at all.
OFF = "off"


def user_path(name: str | os.PathLike[str] | None = None) -> Path | None:
    """The memo file called `name`, where that is empty by `MORELLO_MEMO`, else in the user's data folder; None: off."""
    text = os.fspath(name) if name else os.environ.get("MORELLO_MEMO", "")
    if text.strip().lower() == OFF:
        return None
    if text:
        return Path(text).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("morello-mlir", appauthor=False)) / "memo.sqlite"


def shipped_path(target: Target) -> Path:
    """The memo that the package ships for `target` and others of the same instruction set, which need not exist."""
    return Path(__file__).parent / "shipped" / f"{target.name}.sqlite"


def shipped_targets(name: str) -> dict[str, Target]:
    """What the shipped memo of the base target `name` answers for, by the names in SHIPPED."""
    found = {n: get_target(n) for n in SHIPPED}
    return {n: t for n, t in found.items() if t.name == name}


@lru_cache(maxsize=32)
def open_store(path: Path, writable: bool = True) -> Store:
    """The process's store at `path`: one connection, however many searches use it."""
    return Store(path, writable=writable)
