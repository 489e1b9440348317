"""Passes for the tests of pipelines, registered only while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from morello_mlir.passes import registry
from morello_mlir.passes.base import Pass, emit_error, option, remark, warn
from morello_mlir.passes.registry import NamedPipeline


@dataclass(frozen=True)
class Note(Pass):
    """Says that it ran, with its options."""

    name: ClassVar[str] = "test-note"
    summary: ClassVar[str] = "Emit a remark"
    anchor: ClassVar[str | None] = None
    count: int = option(1, help="a number")
    loud: bool = option(False, help="a flag")
    text: str = option("", help="a text")
    sizes: tuple[int, ...] = option((), help="some numbers")
    names: tuple[str, ...] = option((), help="some texts")
    limit: int | None = option(None, help="a number or none")
    ratio: float = option(0.5, help="a fraction")
    mode: Literal["fast", "slow"] = option("fast", help="a choice")

    def run(self, op: Any) -> None:
        remark(op, str(self))


@dataclass(frozen=True)
class OnFunction(Pass):
    """Runs on functions only; renames them."""

    name: ClassVar[str] = "test-on-function"
    summary: ClassVar[str] = "Append to the names of functions"
    anchor: ClassVar[str | None] = "func.func"
    suffix: str = option("_x")

    def run(self, op: Any) -> None:
        from mlir import ir

        old = ir.StringAttr(op.attributes["sym_name"]).value
        op.attributes["sym_name"] = ir.StringAttr.get(old + self.suffix)


@dataclass(frozen=True)
class Fail(Pass):
    """Fails in the way it is told."""

    name: ClassVar[str] = "test-fail"
    summary: ClassVar[str] = "Fail"
    anchor: ClassVar[str | None] = None
    how: Literal["fail", "emit", "mlir", "spec", "invalid", "bug"] = option("fail")

    def run(self, op: Any) -> None:
        from mlir import ir

        from morello_mlir.errors import SpecError

        if self.how == "fail":
            self.fail(op, "has nothing to tile", (op, "here it is"))
        elif self.how == "emit":
            warn(op, "look out")
            emit_error(op, "is the first problem")
            emit_error(op, "is the second problem")
        elif self.how == "mlir":
            ir.Module.parse("not mlir")
        elif self.how == "spec":
            raise SpecError("unknown memory 'L9'")
        elif self.how == "invalid":
            op.attributes["sym_name"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)
        else:
            raise ZeroDivisionError("a bug")


def twice(*, count: Annotated[int, "how often"] = 2, suffix: str = "_p") -> str:
    """Note, then rename the functions.

    More words.
    """
    return f"test-note{{count={count}}},func.func(test-on-function{{suffix={suffix}}},canonicalize),cse"


def endless() -> str:
    """Stands for itself."""
    return "builtin.module(test-endless)"


def raw(options: dict[str, str]) -> str:
    """Takes its options as they are."""
    return f"test-note{{count={options.get('n', '1')}}}"


ITEMS = (
    Note,
    OnFunction,
    Fail,
    NamedPipeline("test-twice", twice),
    NamedPipeline("test-endless", endless),
    NamedPipeline("test-raw", raw),
)


@contextmanager
def registered() -> Iterator[None]:
    """The passes above, known within the block."""
    for item in ITEMS:
        registry.register(item)
    try:
        yield
    finally:
        for item in ITEMS:
            registry.unregister(item.name)
