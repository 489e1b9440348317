"""The thread pool that parallel loops run on: compiled once per process, started by the first loop.

The pool is LLVM IR (`pool.ll`): it needs no compiler at the user's, and no interpreter lock.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from importlib import resources
from typing import Any

from morello_mlir.locks import once

#: The symbol of the fork-join in lowered programs: `void (ptr fn, ptr context, i64 calls)`.
ENTRY = "morello_parallel"
_STATE = "morello_pool"
_STATE_BYTES = 256 + 128 * 252
_HELPERS_AT = 192
#: Tells the kernel to hand a forked child cleared memory.
_WIPE_ON_FORK = 18
#: Helpers run the code and read the state for as long as the process lives.
_kept: list[Any] = []


@once
def symbols() -> dict[str, int]:
    """The address of the fork-join, by symbol. Raises CompileError where the system lacks what the pool needs."""
    from . import jit
    from .cache import shared_cache

    state = _state()
    text = resources.files(__package__).joinpath("pool.ll").read_text(encoding="utf-8")
    library = jit.load(text, (ENTRY,), jit.Options(vectorize=False), shared_cache(), {_STATE: state})
    # Not only referred to: an object whose count never falls is not finalised with the interpreter either.
    for each in (library, library._tracker, jit._linker()):
        _kept.append(each)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    return library.addresses


def helpers() -> int:
    """How many threads the pool has started in this process."""
    return ctypes.c_int64.from_address(_state() + _HELPERS_AT).value


@once
def _state() -> int:
    """The address of the pool's state: zeros, and zeros again in every forked child."""
    block = mmap.mmap(-1, _STATE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = (ctypes.c_char * _STATE_BYTES).from_buffer(block)
    address = ctypes.addressof(view)
    for each in (block, view):
        _kept.append(each)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    try:
        block.madvise(_WIPE_ON_FORK)
    except OSError:
        # Kernels before 4.14: forks by Python are seen, others are not.
        os.register_at_fork(after_in_child=lambda: ctypes.memset(address, 0, _STATE_BYTES))
    return address
