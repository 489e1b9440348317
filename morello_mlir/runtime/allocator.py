"""The memory that programs allocate for what lies between their ops: large blocks are kept for the next call.

It is LLVM IR (`allocator.ll`), and takes the places of `malloc` and `free` in programs, unless `MORELLO_KEEP_MEMORY`
is `off`.
"""

from __future__ import annotations

import ctypes
import os
from importlib import resources
from typing import Any

from morello_mlir.locks import once

#: Set to `off`, this variable has programs give their memory back after every call.
KEEP = "MORELLO_KEEP_MEMORY"
_ALLOCATE, _RELEASE = "morello_allocate", "morello_release"
#: Programs free through it for as long as the process lives.
_kept: list[Any] = []


def symbols() -> dict[str, int]:
    """What programs are to call for `malloc` and `free`: addresses by symbol; empty where nothing is kept."""
    if os.environ.get(KEEP) == "off" or not hasattr(ctypes.CDLL(None), "malloc_usable_size"):
        return {}
    addresses = _library().addresses
    return {"malloc": addresses[_ALLOCATE], "free": addresses[_RELEASE]}


@once
def _library() -> Any:
    from . import jit
    from .cache import shared_cache

    text = resources.files(__package__).joinpath("allocator.ll").read_text(encoding="utf-8")
    library = jit.load(text, (_ALLOCATE, _RELEASE), jit.Options(vectorize=False), shared_cache())
    # Not only referred to: an object whose count never falls is not finalised with the interpreter either.
    for each in (library, library._tracker, jit._linker()):
        _kept.append(each)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    return library
