"""Where memos are: the user's file, and the ones that the package ships."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ..targets import Target
from .store import Store

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
    """The memo that the package ships for `target`, which need not exist."""
    return Path(__file__).parent / "shipped" / f"{target.name}.sqlite"


@lru_cache(maxsize=32)
def open_store(path: Path, writable: bool = True) -> Store:
    """The process's store at `path`: one connection, however many searches use it."""
    return Store(path, writable=writable)
