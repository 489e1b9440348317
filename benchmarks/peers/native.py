"""Calling C functions many times in a row without Python in between: a loop of our own, compiled for the purpose."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from morello_mlir.runtime import jit

#: What is given to a C function: an array (its data pointer), an int (32 bits), a float (32 bits), or an explicit
#: (LLVM type, value).
Argument = Any


@dataclass(frozen=True)
class NativeCall:
    """A call of the function at an address, with arguments that never change."""

    address: int
    arguments: tuple[Argument, ...]
    returns: str = "void"


def address_of(function: Any) -> int:
    """The address of a function of a ctypes library. Raises ValueError: there is none."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise ValueError("a null function pointer")
    return address


def repeat(calls: Sequence[NativeCall]) -> Callable[[int], None]:
    """A function of n that makes all `calls`, in order, n times. The arrays among the arguments are kept alive."""
    body = "\n".join(f"  call {c.returns} inttoptr (i64 {c.address} to ptr)({_listed(c.arguments)})" for c in calls)
    return loop("", body, keep=calls)


def loop(
    before: str, body: str, *, phis: str = "", after: str = "", declare: str = "", keep: Any = None
) -> Callable[[int], None]:
    """A function of n around the LLVM IR of a loop body (one block), which runs n times, n at least 1.

    before, after: what stands around the loop. keep: kept alive with the function.
    """
    ir = f"""
{declare}
define void @repeat(i64 %times) {{
entry:
{before}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %done
done:
{after}
  ret void
}}
"""
    library = jit.load(ir, ("repeat",), jit.Options(vectorize=False), None)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library.addresses["repeat"])

    def repeated(times: int, kept: Any = (library, keep)) -> None:
        run(times)

    return repeated


def _listed(arguments: Sequence[Argument]) -> str:
    return ", ".join(_argument(a) for a in arguments)


def _argument(value: Argument) -> str:
    if isinstance(value, tuple):
        return f"{value[0]} {value[1]}"
    if isinstance(value, float):
        return f"float {value:.6e}"
    if isinstance(value, int):
        return f"i32 {value}"
    return f"ptr inttoptr (i64 {value.ctypes.data} to ptr)"
