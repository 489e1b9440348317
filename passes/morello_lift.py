"""morello-lift: contractions on memrefs become calls of private functions that hold one `morello.spec` each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from morello_mlir import dialect, lifting
from morello_mlir.errors import SpecError
from morello_mlir.lifting import Covered, Lifted, Rejected
from morello_mlir.lifting.emit import Functions

from .base import Pass, option
from .morello_group import clear_tags, report


@dataclass(frozen=True)
class MorelloLift(Pass):
    """Replace every linalg contraction on memrefs that a Spec covers by a call of a private function with that Spec.

    Works with and without the tags of `morello-group`, and removes them. What no Spec covers stays as it is. A
    remark at each linalg op says its Spec, or why it was not lifted. A schedule that a user wrote on the op, as the
    attribute `morello.schedule`, goes to the `morello.spec`, which is serial where the schedule has steps and none of
    them says how threads share the work.

    An op whose output may overlap an input stays with upstream, whose loops run in one defined order; a blocked nest
    reads inputs after it has written parts of the output. Aliases are followed through all that the module shows:
    views, branches, loops, calls. Buffers that come from outside of the module, as arguments of public functions, are
    taken not to overlap; `compile()` checks that at every call, and runs other code where they do.

    With `pack-constants`, inputs whose contents never change are constant operands of the Spec, which a schedule may
    pack ahead: parts of constant globals, and of arguments that are marked `morello.constant`, by which the caller
    promises that they hold at every call what they hold at the first.
    """

    name: ClassVar[str] = "morello-lift"
    summary: ClassVar[str] = "Turn linalg contractions on memrefs into morello.spec ops in private functions"

    threads: int = option(1, help="how many threads each morello.spec has")
    pack_constants: bool = option(True, help="let schedules pack inputs ahead that never change")
    pack_limit: int = option(1024, help="the largest of them, in MiB")

    def run(self, op: Any) -> None:
        dialect.load(op.context)
        for name in ("threads", "pack_limit"):
            if getattr(self, name) < 0:
                self.fail(op, f"{name.replace('_', '-')} must not be negative: {getattr(self, name)}")
        modules: dict[Any, Functions] = {}
        done = []
        # The survey is complete before anything is rewritten: calls would hide what the ops touch.
        for each, found in lifting.survey(op):
            outcome = self._with_constants(each, _on_memrefs(each, found))
            report(each, outcome)
            if isinstance(outcome, Lifted):
                module = lifting.enclosing_module(each)
                if module not in modules:
                    modules[module] = Functions(module, self.threads)
                try:
                    modules[module].call(each, outcome)
                except SpecError as error:
                    self.fail(each, str(error))
            if not isinstance(outcome, Rejected):
                done.append(each)
        for each in done:
            each.erase()
        clear_tags(op)

    def _with_constants(self, op: Any, outcome: Lifted | Covered | Rejected) -> Lifted | Covered | Rejected:
        if not self.pack_constants or not isinstance(outcome, Lifted):
            return outcome
        try:
            return lifting.with_constants(outcome, self.pack_limit << 20)
        except SpecError as error:
            self.fail(op, str(error))


def _on_memrefs(op: Any, outcome: Lifted | Covered | Rejected) -> Lifted | Covered | Rejected:
    """The outcome where tensors cannot be lifted any more."""
    if not isinstance(outcome, Rejected) and len(op.results):
        return Rejected("it is on tensors: bufferize first")
    return outcome
