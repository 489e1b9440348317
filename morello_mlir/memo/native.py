"""Kernels of the memo: those that numba compiles, and NumPy's where it cannot be imported."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..locks import IMPORTING, forks_wait_for


def kernels(name: str) -> ModuleType:
    """The module `NAME_numba` of this package, or `NAME_numpy` where numba cannot be imported.

    The writer's thread comes here first. A child that is forked then would find half a module for good, or the lock
    that numba compiles under taken: forks wait for both.
    """
    with IMPORTING:
        try:
            found = import_module(f"{__package__}.{name}_numba")
        except ImportError:
            return import_module(f"{__package__}.{name}_numpy")
        compiling = import_module("numba.core.compiler_lock").global_compiler_lock
        # (numba's own `acquire` knows only to wait.)
        forks_wait_for(compiling._lock)
        return found
