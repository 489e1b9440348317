"""morello-lift: contractions and nests on memrefs become calls of private functions that hold one goal each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from morello_mlir import dialect, lifting
from morello_mlir.errors import SpecError
from morello_mlir.lifting import Covered, Lifted, Rejected
from morello_mlir.lifting.aliases import nested_ops
from morello_mlir.lifting.borders import Padding, fill_only_borders, padding_of
from morello_mlir.lifting.edges import clear_borders, mark_borders, with_edges
from morello_mlir.lifting.emit import SCHEDULE, Functions, for_threads, given_schedule
from morello_mlir.lifting.nests import (
    IS_CONTRACTION,
    LiftedNest,
    NestFunctions,
    calls,
    explain_call,
    explain_op,
    holds_until,
    is_inside,
    unpadded,
)
from morello_mlir.lifting.once import PREFIX, Once, emit_once, made_once
from morello_mlir.lowering.ahead import LOCAL

from .base import Pass, option, remark
from .morello_group import clear_tags, report
from .siblings import OWN_COPY

Outcome = Lifted | Covered | Rejected | LiftedNest
_Modules = dict[Any, tuple[Functions, NestFunctions]]


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
    promises that they hold at every call what they hold at the first. Nests that read such inputs alone run once: what
    they make is kept in a buffer of the module.

    With `nests`, elementwise ops, reductions and what else is a nest become `morello.nest` ops in the same way: the
    functions that `morello-outline` made of chains of them, at their calls, and single ops. An output may then lie in
    the place of an input, element for element. A padded buffer that only nests read is not made: they read what it is
    made of, and know what is around it. Others get what `morello-fill-borders` does.
    """

    name: ClassVar[str] = "morello-lift"
    summary: ClassVar[str] = "Turn linalg contractions on memrefs into morello.spec ops in private functions"

    threads: int = option(1, help="how many threads each morello.spec has")
    pack_constants: bool = option(True, help="pack inputs that never change ahead, and run nests on them once")
    pack_limit: int = option(1024, help="the largest of them, in MiB")
    nests: bool = option(True, help="also lift elementwise ops, reductions and chains of them")

    def run(self, op: Any) -> None:
        dialect.load(op.context)
        for name in ("threads", "pack_limit"):
            if getattr(self, name) < 0:
                self.fail(op, f"{name.replace('_', '-')} must not be negative: {getattr(self, name)}")
        modules: _Modules = {}
        self._read_unpadded(op, modules)
        # The survey is complete before anything is rewritten: calls would hide what the ops touch.
        found = self._survey(op)
        once = self._made_once(op, found, modules)
        made = {each.alloc: f"{LOCAL}{each.name}" for each in once.values()}
        found = [(each, self._with_constants(each, outcome, made), holder) for each, outcome, holder in found]
        done = []
        for each, outcome, holder in found:
            self._report(each, outcome, holder)
            if isinstance(outcome, (Lifted, LiftedNest)) and each not in once:
                contractions, nests = self._functions(each, modules)
                try:
                    if isinstance(outcome, Lifted):
                        contractions.call(each, outcome)
                    else:
                        nests.call(each, outcome, holder)
                except SpecError as error:
                    self.fail(each, str(error))
            if not isinstance(outcome, Rejected):
                done.append(each)
        # Those that need what others make first: each is put where its function begins.
        holders = {each: holder for each, _, holder in found}
        for each, nest in reversed(once.items()):
            nests = self._functions(each, modules)[1]
            emit_once(nest, partial(nests.call, each, holder=holders[each]))
        for each in done:
            each.erase()
        for function in dict.fromkeys(self._lifted_functions(found)):
            function.erase()
        clear_tags(op)
        clear_borders(op)

    def _made_once(self, op: Any, found: list[tuple[Any, Outcome, Any]], modules: _Modules) -> dict[Any, Once]:
        """The nests that need to run once, by op."""
        if not self.pack_constants:
            return {}

        def name(each: Any) -> str:
            return self._functions(each, modules)[1].names.unused(f"{PREFIX}0")

        try:
            return made_once([(each, outcome) for each, outcome, _ in found], self.pack_limit << 20, name)
        except SpecError as error:
            self.fail(op, str(error))

    def _functions(self, op: Any, modules: _Modules) -> tuple[Functions, NestFunctions]:
        """Those of the module around `op`."""
        module = lifting.enclosing_module(op)
        if module not in modules:
            modules[module] = Functions(module, self.threads), NestFunctions(module, self.threads)
        return modules[module]

    def _read_unpadded(self, op: Any, modules: _Modules) -> None:
        """Nests that read padded buffers read what these are made of; where others do as well, borders are filled, and
        buffers that hold zeros around an image say so until all is lifted."""
        buffers = [o.results[0] for o in nested_ops(op) if o.name == "memref.alloc"]
        for padding in [p for b in buffers if (p := padding_of(b)) is not None]:
            mark_borders(padding)
            found = self._readers(op, padding) if self.nests else None
            if found is None:
                fill_only_borders(padding)
                continue
            for reader, lifted, holder in found:
                self._report(reader, lifted, holder)
                self._functions(reader, modules)[1].call(reader, lifted)
                for each in (reader, lifted.fill):
                    if each is not None:
                        each.erase()
                if holder is not None and not any(function == holder for _, function in calls(op)):
                    holder.erase()
            users = [use.owner.operation for use in padding.buffer.uses if use.owner.operation != padding.view]
            frees = [user for user in users if user.name == "memref.dealloc"]
            for each in (padding.copy, padding.view, padding.fill, *frees, padding.buffer.owner):
                each.erase()

    def _readers(self, op: Any, padding: Padding) -> list[tuple[Any, LiftedNest, Any]] | None:
        """What reads a padded buffer: ops or calls, as nests that do not need it, and the functions that are called;
        None where something else does, too."""
        aliases, functions = lifting.aliases_around(op), dict(calls(op))
        found: list[tuple[Any, LiftedNest, Any]] = []
        for reader in padding.readers():
            if reader is None or SCHEDULE in reader.attributes:
                return None
            holder = functions.get(reader)
            if holder is not None:
                lifted = explain_call(reader, holder, aliases)
            elif reader.name.startswith("linalg."):
                lifted = explain_op(reader, aliases)
            else:
                return None
            if isinstance(lifted, Rejected) or (holder is not None and SCHEDULE in holder.attributes):
                return None
            outputs = lifted.values[len(lifted.spec.body.inputs) :]
            new = unpadded(lifted, padding) if holds_until(padding, reader, outputs, aliases) else None
            if new is None:
                return None
            found.append((reader, new, holder))
        return found or None

    def _survey(self, op: Any) -> list[tuple[Any, Outcome, Any]]:
        """Every linalg op, and every call of a function around a nest: what becomes of it, and that function or None.
        Ops in functions of which nothing will be left are not listed."""
        found: list[tuple[Any, Outcome, Any]] = []
        aliases = lifting.aliases_around(op)
        if self.nests:
            found += [(call, explain_call(call, function, aliases), function) for call, function in calls(op)]
        gone = self._lifted_functions(found)
        covered: list[Any] = []
        for each, outcome in reversed(lifting.survey(op)):
            if any(is_inside(each, function) for function in gone):
                continue
            if each in covered:
                found.append((each, Covered(each), None))
                continue
            outcome = _on_memrefs(each, outcome)
            if self.nests and isinstance(outcome, Rejected) and not len(each.results):
                outcome = _as_nest(explain_op(each, aliases), outcome)
                if isinstance(outcome, LiftedNest) and outcome.fill is not None:
                    covered.append(outcome.fill)
            found.append((each, outcome, None))
        return found[::-1]

    def _lifted_functions(self, found: list[tuple[Any, Outcome, Any]]) -> list[Any]:
        """The functions around nests all calls of which are lifted."""
        kept = [function for _, outcome, function in found if isinstance(outcome, Rejected) and function is not None]
        functions = [function for _, _, function in found if function is not None]
        return [f for i, f in enumerate(functions) if f not in kept and f not in functions[:i]]

    def _report(self, op: Any, outcome: Outcome, holder: Any) -> None:
        if isinstance(outcome, LiftedNest):
            if OWN_COPY not in op.attributes:
                remark(op, f"{outcome.name} lifted: {self._goal(outcome, op if holder is None else holder)}")
        elif isinstance(outcome, Lifted):
            remark(op, f"{op.name} lifted: {self._goal(outcome, op)}")
        elif holder is not None and isinstance(outcome, Rejected):
            remark(op, f"not lifted as one nest: {outcome.reason}")
        else:
            report(op, outcome)

    def _goal(self, outcome: Lifted | LiftedNest, holder: Any) -> Any:
        """The goal that is searched for. holder: the op that may have a schedule by hand."""
        spec: Any = outcome.spec
        try:
            return for_threads(spec, self.threads, given_schedule(holder))
        except SpecError:  # an attribute that is no schedule: an error as soon as the op is lifted
            return spec

    def _with_constants(self, op: Any, outcome: Outcome, made: dict[Any, str]) -> Outcome:
        """The outcome with constant operands marked. made: names for what is made once, by allocation."""
        if not isinstance(outcome, Lifted):
            return outcome
        outcome = with_edges(outcome)
        if not self.pack_constants:
            return outcome
        try:
            return lifting.with_constants(outcome, self.pack_limit << 20, made)
        except SpecError as error:
            self.fail(op, str(error))


def _on_memrefs(op: Any, outcome: Lifted | Covered | Rejected) -> Lifted | Covered | Rejected:
    """The outcome where tensors cannot be lifted any more."""
    if not isinstance(outcome, Rejected) and len(op.results):
        return Rejected("it is on tensors: bufferize first")
    return outcome


def _as_nest(nest: LiftedNest | Rejected, contraction: Rejected) -> LiftedNest | Rejected:
    """What becomes of an op that no contraction covers; of two reasons, the one that is to the point."""
    if isinstance(nest, LiftedNest) or ("not a contraction" in contraction.reason and nest.reason != IS_CONTRACTION):
        return nest
    return contraction
