"""The memo as the search sees it: schedules found before, and solved tables, from the user's file and the shipped."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from ..actions import Action, TableKey, explore, matters, remaining
from ..actions.space import holds
from ..errors import MorelloError
from ..locks import FirstTimes, lock
from ..search.schedule import Node
from ..search.tables import AXES, Tables
from ..targets import INFINITE, MAX_COST, Target
from . import locate
from .answers import Answers
from .coordinates import is_answered, key_text, limit_index, memo_key
from .examine import examine
from .record import IMPOSSIBLE, Record, action_from
from .store import Store, log
from .table import QUICK, block_of, records_of
from .variants import pattern_of, table_at
from .version import space_of


class Unknown(Exception):
    """The memo does not lead all the way: somewhere below there is a state without an action."""


class Impossible(Unknown):
    """What the memo leads to is known to have no implementation."""


class Layer:
    """The records of one store for one target, read when asked for and kept."""

    def __init__(self, store: Store, source: str, target: Target):
        self.store = store
        self.source = source
        self.target = target
        self.space = space_of(target)
        self._records: dict[TableKey, list[Record]] = {}
        self._packs: dict[str, list[Record]] = {}
        self._actions: dict[tuple[TableKey, str], Action] = {}

    def records(self, key: TableKey) -> list[Record]:
        """What is known of the table of `key`, a memo key."""
        found = self._records.get(key)
        if found is None:
            found = self.store.get(self.space, key_text(key))
            together = pattern_of(key)
            if together is not None:
                packs = self._packs.get(together[0])
                if packs is None:
                    packs = self._packs[together[0]] = self.store.get(self.space, together[0])
                found += [one for p in packs if (one := table_at(p, together[1])) is not None]
            self._records[key] = found
        return found

    def forget(self, key: TableKey) -> None:
        """Has the records of `key` read again."""
        self._records.pop(key, None)

    def action(self, key: TableKey, dims: Mapping[str, int], limit: int) -> Action | None:
        """The action at one point; None where it is not known, or where a complete record has no implementation.

        Raises Impossible: another record says that there is none.
        """
        for record in self.records(key):
            point = record.point(dims, limit)
            box = record.boxes.find(point) if point else -1
            if box >= 0:
                return self.named(key, record.actions[record.boxes.action[box]])
        return None

    def actions_at(self, key: TableKey, points: np.ndarray) -> list[Action | None]:
        """The actions at every row `(m, k, n, limit index)` of `points`, sizes as they are. For batches."""
        out: list[Action | None] = [None] * len(points)
        for record in self.records(key):
            cells, inside = _cells(record, points)
            boxes = record.boxes.find_many(cells)
            for i in np.nonzero((boxes >= 0) & inside)[0]:
                label = record.actions[record.boxes.action[boxes[i]]]
                if out[i] is None and label != IMPOSSIBLE:
                    out[i] = self.named(key, label)
        return out

    def named(self, key: TableKey, label: str) -> Action:
        """The action that records of `key` call `label`. Raises MorelloError, Impossible."""
        if label == IMPOSSIBLE:
            raise Impossible
        if (key, label) not in self._actions:
            action = action_from(label, key)
            if not holds(action.requires(key, self.target)):
                raise Unknown(f"{label} is not legal for {key_text(key)}")
            self._actions[key, label] = action
        return self._actions[key, label]


def _cells(record: Record, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`points` as grid points of `record`, and which of them it has."""
    cells = points.astype(np.int64).copy()
    inside = (points[:, 3] >= 0) & (points[:, 3] < record.limits)
    for i, axis in enumerate(record.sizes):
        sizes, order = np.array(axis), np.argsort(axis)
        at = order[np.searchsorted(sizes, points[:, i], sorter=order).clip(0, len(sizes) - 1)]
        inside &= sizes[at] == points[:, i]
        cells[:, i] = at
    return cells, inside


#: Seconds that a search takes before its tables are written beside it, so that it can be interrupted and gone on with:
#: shorter ones are not held up by that.
LONG_SEARCH = 2.0
#: Tables that may wait to be written: those of two or three goals.
MOST_PENDING = 400


#: Held while something is written, and by who has others write nothing (`undisturbed`).
_writing = lock()
#: Around what numba compiles and runs, for which it imports more than itself.
_compressing = FirstTimes()
#: Seconds that the latter keep writers waiting at most.
LONGEST_WAIT = 60.0


@contextmanager
def undisturbed() -> Iterator[None]:
    """No memo of this process writes meanwhile; what is being written is finished before.

    For what replaces functions of Python's in all threads (torch.export: `max`, `min`, `math.pow`): numba, which
    writers import and compile with, fails on those, and tables would be lost.
    """
    with _writing:
        yield


def _in_turn(work: Callable[[], None]) -> None:
    taken = _writing.acquire(timeout=LONGEST_WAIT)
    try:
        work()
    finally:
        if taken:
            _writing.release()


def _give_way() -> None:
    """Lowers the priority of this thread: who calls what has been compiled is not to feel it. (Linux: threads have
    priorities of their own.)"""
    if sys.platform == "linux":
        with suppress(OSError):
            here = os.PRIO_PROCESS, threading.get_native_id()
            os.setpriority(*here, os.getpriority(*here) + 5)


class Memo:
    """Layers in order of look-up, and where what is solved goes. One per target and user's file.

    wait: whoever searches waits until what was solved is on disk; else it is written while the process does other
    things, before it ends (`flush`).
    """

    def __init__(self, target: Target, user: Store | None, shipped: Store | None = None, *, wait: bool = True):
        self.target = target
        self.user = Layer(user, "memo", target) if user else None
        self.layers = [*([self.user] if self.user else []), *([Layer(shipped, "shipped", target)] if shipped else [])]
        #: Of goals that are kept as a whole; None without a user's file.
        self.answers = Answers(user, self.searched) if user else None
        self._writer: ThreadPoolExecutor | None = None
        self._lock = Lock()
        self._wait = wait
        #: Solved, and not yet given to the writer; and since when.
        self._unwritten: list[tuple[Tables, TableKey]] = []
        self._since = 0.0
        #: What the writer has to do.
        self._pending: list[tuple[Future[None], Callable[[], None]]] = []
        #: Whether the file has tables of these sizes.
        self._begun: weakref.WeakKeyDictionary[Tables, bool] = weakref.WeakKeyDictionary()
        _memos.add(self)

    # ------------------------------------------------------------ schedules

    def find(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> tuple[Node, int, str] | None:
        """The optimal schedule of a goal, its cost and where it came from (`memo`, `shipped`); None where some part of
        it is not known. Every step is checked for legality, and the cost is priced anew."""
        try:
            walk = _Rebuild(self)
            node, cost = walk.build(key, dims, left)
        except (Unknown, MorelloError):
            return None
        return (node, cost, "shipped" if "shipped" in walk.sources else "memo") if cost < MAX_COST else None

    def count(self, source: str) -> None:
        """Counts where an answer came from, for the hit rate."""
        if self.user:
            self.user.store.count(source)

    # ------------------------------------------------------------ tables (a `Source` of search.tables)

    def load(self, tables: Tables, key: TableKey) -> np.ndarray | None:
        if self.user is None or "VRF" in key.memories or not self._was_begun(tables):
            return None
        name = memo_key(key, self.target)
        try:
            return block_of(tables, key, self.user.records(name))
        except MorelloError:
            return None

    def _was_begun(self, tables: Tables) -> bool:
        """Whether an earlier search has left tables of these very sizes: one that was interrupted, or of another goal
        with the same. Those of other goals are not read: that takes longer than solving them."""
        known = self._begun.get(tables)
        if known is None:
            largest = "x".join(str(max(tables.sizes[d])) for d in AXES)
            known = bool(self.user and self.user.store.has_shape(self.user.space, f"scale {largest}", f"off {largest}"))
            self._begun[tables] = known
        return known

    def solved(self, tables: Tables, key: TableKey, block: np.ndarray) -> None:
        """Has the table compressed and written beside what the process does, in a while."""
        # Where the output is in registers only kernels are left: quicker solved than read.
        if self.user is None or "VRF" in key.memories:
            return
        with self._lock:
            if not self._unwritten:
                self._since = time.monotonic()
            self._unwritten.append((tables, key))
            if self._wait or time.monotonic() - self._since > LONG_SEARCH:
                self._write()

    def searched(self) -> None:
        """A search is done: what it solved is written, now or beside what comes next. So are the files looked through,
        once: what was searched for may have been there, and been damaged."""
        with self._lock:
            self._examine()
            self._write()
        if self._wait:
            self.flush()

    def _write(self) -> None:
        """Gives what was solved to the writer, after the files: what it would replace may be damaged."""
        if self._unwritten:
            self._examine()
        for one in self._unwritten:
            self._submit(partial(self._keep, *one))
        self._unwritten = []
        # Whoever is faster than the writer waits for it: tables take memory.
        while len(self._pending) > MOST_PENDING:
            self._finish(*self._pending.pop(0))

    def _examine(self) -> None:
        for layer in self.layers:
            if not layer.store.is_examined:
                self._submit(partial(_look_through, layer.store))

    def _submit(self, what: Callable[[], None]) -> None:
        work = partial(_in_turn, what)
        self._pending.append((self._executor().submit(work), work))

    def _finish(self, future: Future[None], work: Callable[[], None]) -> None:
        """Waits until the writer has done something. Whoever waits does what it has not begun, which gives way."""
        if future.cancel():
            work()
        else:
            future.result()

    def _keep(self, tables: Tables, key: TableKey) -> None:
        assert self.user is not None
        name = memo_key(key, self.target)
        try:
            with _compressing():
                records = records_of(tables, key, orders=QUICK)
            self.user.store.put(self.user.space, self.target.name, records)
        except Exception as error:
            # An answer that cannot be kept is an answer all the same.
            log.warning("memo %s: a table was not kept: %s", self.user.store.path, error)
        self.user.forget(name)

    def _executor(self) -> ThreadPoolExecutor:
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "morello-memo", _give_way)
        return self._writer

    def _after_fork(self) -> None:
        """Threads do not survive a fork; what they had to write the parent writes."""
        self._lock, self._writer, self._unwritten, self._pending = Lock(), None, [], []

    def flush(self) -> None:
        """Waits until what was solved is on disk. Python does so when it ends; who ends otherwise must."""
        with self._lock:
            self._write()
            pending, self._pending = self._pending, []
        for each in pending:
            self._finish(*each)

    def close(self) -> None:
        """As `flush`; no write-ahead log stays behind, unless others have the file open. It can be used again."""
        self.flush()
        if self.user:
            self.user.store.close()


def _look_through(store: Store) -> None:
    try:
        examine(store)
    except Exception as error:
        log.warning("memo %s: it was not looked through: %s", store.path, error)


#: Those of this process, for its children.
_memos: weakref.WeakSet[Memo] = weakref.WeakSet()


def _after_fork() -> None:
    for memo in _memos:
        memo._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Rebuild:
    """Reads one schedule off the memo, from the top."""

    def __init__(self, memo: Memo):
        self.memo = memo
        self.target = memo.target
        self.sources: set[str] = set()
        self.done: dict[object, tuple[Node, int]] = {}

    def build(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> tuple[Node, int]:
        """Raises Unknown."""
        point = (key, *dims.values(), *(left[m] for m in left if matters(key, m)), limit_index(key, left, self.target))
        if point not in self.done:
            self.done[point] = self.step(key, dims, left)
        return self.done[point]

    def step(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> tuple[Node, int]:
        if key.has_const or dims["b"] > 1 or not (key.function.endswith("Accum") or key.streams):
            # Above the tables nothing is kept: what is best follows from the answers below, of which all must be known.
            actions = explore(key, dims, self.target)
            legal = [a for a in actions if holds(a.conditions(key, dims, left, self.target))]
            ways = [way for action in legal if (way := self._possible(action, key, dims, left))]
            if not ways:
                raise Impossible(f"nothing implements {key_text(key)}")
            return min(ways, key=lambda way: way[1])
        return self.taken(self.action(key, dims, left), key, dims, left)

    def _possible(
        self, action: Action, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]
    ) -> tuple[Node, int] | None:
        """As `taken`; None where what it leads to is known to have no implementation."""
        try:
            return self.taken(action, key, dims, left)
        except Impossible:
            return None

    def taken(
        self, action: Action, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]
    ) -> tuple[Node, int]:
        """The tree that begins with `action`, and its cost."""
        if not holds(action.conditions(key, dims, left, self.target)):
            raise Unknown(f"{action.label()} is not legal")
        after = remaining(action, key, dims, left, self.target)
        bodies, costs = [], []
        for child in action.children(key, dims):
            if not child.count:
                costs.append(0)
                continue
            body, below = self.build(child.key, child.dims, after)
            bodies.append(body)
            costs.append(below)
        return action.node(bodies), int(action.total(key, dims, self.target, costs))

    def action(self, key: TableKey, dims: Mapping[str, int], left: Mapping[str, int]) -> Action:
        """The optimal action of a table: below the tables kernels are priced, the rest is known."""
        if "VRF" in key.memories:
            return self.kernel(key, dims, left)
        if is_answered(key, left, self.target):
            name, limit = memo_key(key, self.target), limit_index(key, left, self.target)
            for layer in self.memo.layers:
                action = layer.action(name, dims, limit)
                if action is not None:
                    self.sources.add(layer.source)
                    return action
        raise Unknown

    def kernel(self, key: TableKey, dims: Mapping[str, Any], left: Mapping[str, int]) -> Action:
        best, chosen = INFINITE, None
        for action in explore(key, dims, self.target):
            if holds(action.conditions(key, dims, left, self.target)):
                cost = int(action.cost(key, dims, self.target))
                if cost < best:
                    best, chosen = cost, action
        if chosen is None:
            raise Unknown
        return chosen


def memo_for(target: Target, name: str | os.PathLike[str] | None = None) -> Memo | None:
    """The memo of a search for `target`: the user's file called `name` (see `locate.user_path`) and the shipped one;
    None where it is off."""
    path = locate.user_path(name)
    if path is None:
        return None
    shipped = locate.shipped_path(target)
    return Memo(
        target,
        locate.open_store(path),
        locate.open_store(shipped, False) if shipped.is_file() else None,
        wait=False,
    )
