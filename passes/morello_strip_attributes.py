"""The pass `morello-strip-attributes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mlir.ir as ir

from .base import Pass, option
from .symbols import all_ops


@dataclass(frozen=True)
class StripAttributes(Pass):
    """Drop the discardable attributes that no lowering below reads.

    Frontends leave theirs (`torch.*`, `jax.*`, `mhlo.*`), and the translation to LLVM IR refuses those of dialects it
    does not know. `llvm.*` stays on functions and arguments; a module's target triple and data layout go, the host's
    hold.
    """

    name: ClassVar[str] = "morello-strip-attributes"
    summary: ClassVar[str] = "Drop foreign discardable attributes"
    keep: tuple[str, ...] = option(("llvm", "morello"), help="the dialects whose attributes stay on functions and ops")

    def run(self, op: Any) -> None:
        prefixes = tuple(f"{dialect}." for dialect in self.keep)
        for each in all_ops(op):
            keep = () if each.name == "builtin.module" else prefixes
            for name in list(each.attributes):
                if name in ("arg_attrs", "res_attrs"):
                    each.attributes[name] = _stripped(each.attributes[name], prefixes)
                elif "." in name and not name.startswith(keep):
                    del each.attributes[name]


def _stripped(listed: Any, keep: tuple[str, ...]) -> Any:
    return ir.ArrayAttr.get(
        [
            ir.DictAttr.get({named.name: named.attr for named in ir.DictAttr(each) if named.name.startswith(keep)})
            for each in ir.ArrayAttr(listed)
        ]
    )
