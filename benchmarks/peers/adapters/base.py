"""What a peer is."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..native import NativeCall, address_of, repeat
from ..workloads import Data, Workload

#: Instruction sets that a run can be limited to; `native` is whatever each library picks.
ISAS = ("native", "avx512", "avx2")


@dataclass(frozen=True)
class Built:
    """A workload, ready to run.

    run:        runs it n times.
    result:     the result of the last run, as an array of the shape and (unless rounded_to says otherwise) of the
                element type asked for.
    rounded_to: the element type of the result where the library has none of the type asked for.
    python:     whether each run is a call from Python, with what that costs.
    note:       what a reader should know.
    """

    run: Callable[[int], None]
    result: Callable[[], Any]
    rounded_to: str | None = None
    python: bool = False
    note: str = ""


class Peer:
    """A library. Nothing is imported before `build`: the settings of the process come first."""

    name: ClassVar[str]
    #: Pip installs it under this name, if it does.
    distribution: ClassVar[str] = ""
    #: Module that must be there.
    module: ClassVar[str] = ""

    def available(self) -> bool:
        """Whether it is installed."""
        return importlib.util.find_spec(self.module) is not None

    def environment(self, threads: int, isa: str) -> Mapping[str, str]:
        """Variables to set before its process starts."""
        return {}

    def start(self, threads: int, isa: str) -> None:
        """Settings that are made in the process."""

    def about(self) -> str:
        """Version, and what instruction set it uses where it says so; asked after the first `build`."""
        return importlib.metadata.version(self.distribution or self.module)

    def build(self, workload: Workload, data: Data) -> Built | None:
        """None where it has nothing for the workload."""
        raise NotImplementedError


def python_calls(call: Callable[[], Any]) -> Callable[[int], None]:
    """Runs a Python callable n times."""

    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


class CBlas(Peer):
    """A library with cblas_sgemm and cblas_dgemm, called from a native loop."""

    prefix: ClassVar[str] = ""

    def load(self) -> ctypes.CDLL:
        raise NotImplementedError

    def build(self, workload: Workload, data: Data) -> Built | None:
        name = {("f32",) * 3: "cblas_sgemm", ("f64",) * 3: "cblas_dgemm"}.get(workload.types)
        if name is None or workload.ahead:
            return None
        address = address_of(getattr(self.load(), self.prefix + name))
        if workload.batch:
            calls = [gemm(address, workload, *each) for each in zip(data.lhs, data.rhs, data.out, strict=True)]
        else:
            calls = [gemm(address, workload, data.lhs, data.rhs, data.out)]
        return Built(repeat(calls), lambda: data.out, note="a call for each of the batch" if workload.batch else "")


ROW_MAJOR, NO_TRANSPOSE = 101, 111


def gemm(address: int, w: Workload, a: Any, b: Any, c: Any) -> NativeCall:
    """out = a @ b through a function with cblas_sgemm's or cblas_dgemm's arguments."""
    one: Any = 1.0
    zero: Any = 0.0
    if w.types[2] == "f64":
        one, zero = ("double", "1.0"), ("double", "0.0")
    sizes = (w.m, w.n, w.k)
    return NativeCall(
        address, (ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, *sizes, one, a, w.k, b, w.n, zero, c, w.n)
    )  # fmt: skip


def library_files(distribution: str, pattern: str) -> list[Path]:
    """Files of an installed distribution whose name matches, wherever pip put them; [] if it is not installed."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(f.locate())).resolve() for f in files if f.match(pattern))


def system_library(*names: str) -> Path | None:
    """The first of these files in the system's library folders."""
    folders = (
        Path("/usr/local/lib"),
        Path("/usr/lib") / f"{platform.machine()}-linux-gnu",
        Path("/usr/lib64"),
        Path("/usr/lib"),
    )
    return next((f / n for n in names for f in folders if (f / n).exists()), None)
