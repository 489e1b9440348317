"""The one question that the passes ask of every linalg op: what becomes of it, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from morello_mlir.errors import SpecError

from .aliases import Aliases, nested_ops
from .contraction import Contraction, recognise
from .fills import fill_before, fill_on_tensors
from .follow import Orders, Surroundings, chains
from .loops import Loop
from .outcome import Covered, Lifted, NotLifted, Rejected
from .plan import Finish, Plan, make_plan
from .then import OUT, Chain

#: What may enclose a lifted op, up to its function: ops that run their regions in place, on this thread or on others
#: of the same machine.
_ENCLOSING = ("affine", "scf", "memref")


def explain(op: Any, aliases: Aliases | None = None) -> Lifted | Rejected:
    """Whether and as what a linalg op can be lifted.

    On tensors the answer takes every operand as dense and in a buffer of its own; on memrefs strides, offsets and
    aliases count. aliases: those of the op's module, where the caller asks about many ops of it.
    """
    try:
        check_place(op)
        contraction = recognise(op)
        if contraction.on_tensors:
            zeroed = fill_on_tensors(contraction.values[2])
        else:
            aliases = aliases or Aliases(_root(op))
            _check_overlap(contraction, aliases)
            zeroed = fill_before(op, contraction.values[2], aliases)
    except NotLifted as reason:
        return Rejected(str(reason))
    try:
        through = contraction.window, contraction.pads
        plan = make_plan(contraction.loops, contraction.dtypes, zeroed is None, None, *through)
    except SpecError as error:
        return Rejected(str(error))
    return Lifted(plan, contraction.values, contraction.on_tensors, zeroed)


def survey(root: Any, followers: bool = True) -> list[tuple[Any, Lifted | Covered | Rejected]]:
    """Every linalg op under `root` (bodies of linalg ops excluded), in order, and what becomes of it. followers:
    whether contractions take elementwise ops in."""
    aliases = Aliases(_root(root))
    ops = [op for op in nested_ops(root) if is_linalg(op) and not is_linalg(op.parent)]
    found = {op: explain(op, aliases) for op in ops}
    members: dict[Any, Covered] = {}
    orders = Orders()
    claimed = {op for op, outcome in found.items() if isinstance(outcome, Lifted)} if followers else set()
    for op in list(claimed and ops):
        outcome = found[op]
        if isinstance(outcome, Lifted):
            grown = with_followers(op, outcome, aliases, claimed, orders)
            found[op] = grown
            members.update(dict.fromkeys(grown.members, Covered(op)))
            claimed.update(grown.members)
    covered = {f.fill: Covered(op) for op, f in found.items() if isinstance(f, Lifted) and _is_sole_user(op, f)}
    covered = {**covered, **members}
    return [(op, covered.get(op, outcome)) for op, outcome in found.items()]


def with_followers(op: Any, lifted: Lifted, aliases: Aliases, claimed: Collection[Any], orders: Orders) -> Lifted:
    """`lifted`, what becomes of `op`, with as many of the elementwise ops around it as its Spec can do too. claimed:
    ops that it cannot have."""
    reduces = any(loop.reduction for loop in lifted.plan.outer)
    contraction = recognise(op)
    where = Surroundings(orders.of(op), claimed, None if lifted.on_tensors else aliases)
    for chain in chains(op, contraction, lifted.zeroed, where):
        if reduces and not _sums_stay(chain, lifted):
            continue
        try:
            plan = _plan_of(contraction, chain)
        except (NotLifted, SpecError):
            continue
        if _shape(plan) == _shape(lifted.plan):
            values = (*contraction.values[:2], chain.out, *chain.extras)
            return replace(lifted, plan=plan, values=values, members=chain.members)
    return lifted


def _sums_stay(chain: Chain, lifted: Lifted) -> bool:
    """Whether the results of the chain take the places of the sums, which have been set to something by then: so that
    loops around the Spec can add to them."""
    in_place = lifted.on_tensors or chain.out == lifted.values[2]
    return in_place and (chain.accumulates or lifted.zeroed is not None)


def _shape(plan: Plan) -> tuple[object, ...]:
    """What must not change for the sake of what is done to the sums; the roles of m and n may."""
    b, m, k, n = plan.spec.dims
    return b, k, {m, n}, len(plan.outer)


def _plan_of(contraction: Contraction, chain: Chain) -> Plan:
    reduced = (loop for loop in contraction.loops if loop.role == "k")
    none = (None,) * (1 + len(chain.extras))
    loops = [replace(loop, strides=(*loop.strides[:2], *none)) for loop in reduced]
    for axis in chain.axes:
        has = [axis.role in roles for roles in ("bm", "bn")]
        inputs = [axis.along(i) if there else None for i, there in enumerate(has)]
        extras = (axis.along(("x", i)) for i in range(len(chain.extras)))
        loops.append(Loop(axis.role, axis.size, (*inputs, axis.along(OUT), *extras)))
    element = [str(v.type.element_type) for v in (chain.out, *chain.extras)]
    finish = Finish(chain.body, chain.sums, tuple(element[1:]))
    dtypes, through = (*contraction.dtypes[:2], element[0]), (contraction.window, contraction.pads)
    return make_plan(loops, dtypes, chain.accumulates, finish, *through)


def is_linalg(op: Any) -> bool:
    """Whether an op is of the linalg dialect."""
    return bool(op.operation.name.startswith("linalg."))


def _is_sole_user(op: Any, lifted: Lifted) -> bool:
    """Whether nothing but the lifted op needs its fill."""
    if lifted.fill is None:
        return False
    return all(use.owner.operation == op for result in lifted.fill.results for use in result.uses)


def _check_overlap(contraction: Contraction, aliases: Aliases) -> None:
    """Raises NotLifted where writing the output early could change an input: a blocked loop nest reads inputs after
    it has written parts of the output, upstream's loops do so in one defined order."""
    *inputs, out = contraction.values
    for value, what in zip(inputs, ("first", "second"), strict=True):
        if aliases.may_overlap(value, out):
            raise NotLifted(f"the output may overlap the {what} input")


def check_place(op: Any) -> None:
    """Raises NotLifted unless a call can stand where the op stands: in a function of a builtin.module."""
    parent = op.operation.parent
    while parent is not None and parent.operation.name.partition(".")[0] in _ENCLOSING:
        parent = parent.operation.parent
    if parent is None or parent.operation.name == "builtin.module":
        raise NotLifted("it is in no function")
    if parent.operation.name != "func.func":
        raise NotLifted(f"it is inside '{parent.operation.name}'")
    module = parent.operation.parent
    if module is None or module.operation.name != "builtin.module":
        raise NotLifted("its function is not in a builtin.module")


def aliases_around(op: Any) -> Aliases:
    """The aliases of the outermost op around `op`."""
    return Aliases(_root(op))


def _root(op: Any) -> Any:
    """The outermost op around `op`."""
    while op.operation.parent is not None:
        op = op.operation.parent
    return op.operation
