"""Records: one table (or the part of it that is known) as bytes, and back. Nothing here executes what it reads.

A record is a checksum and a zlib stream of: the length of a JSON header, the header, then the boxes column by column
(docs/memo-format.md). In a file the stream is followed by a seal, a checksum of what the record is found by.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..actions import Action, TableKey, action_of, scale, spec_of
from ..cached import cached_property
from ..errors import MorelloError
from ..search.schedule import parse
from ..search.tables import AXES
from .boxes import NOTHING, Boxes
from .coordinates import on_scale

#: Bytes of the record that `bytes_one_record_each` counts, one for every Spec: table number u32, sizes 3 x u16, limits
#: 3 x u16 (registers, L1, L2), action u16, cost f64.
PLAIN_BYTES = struct.calcsize("<I3H3HHd")

CHECKSUM_BYTES = 16
SEAL_BYTES = 8


class DamagedRecord(MorelloError):
    """Bytes that are not the record they should be."""


@dataclass(frozen=True, eq=False)
class Record:
    """What is known of the table of `key`.

    sizes: of the axes m, k, n. limits: how many the limit axis has. actions: texts of the steps that the boxes number.
    complete: a cell without a box has no implementation (else it is not known); where a size is off the scale, cells
    with sizes on the scale alone are left to the record of the scale. specs: how many Specs the boxes answer.
    variants, extents: where the record packs several tables, the row stride classes of three leading axes (of m, k and
    n), and, if complete, for every combination how many of the sizes its table has (see `variants`).
    """

    key: str
    sizes: tuple[tuple[int, ...], ...]
    limits: int
    actions: tuple[str, ...]
    boxes: Boxes
    complete: bool
    specs: int
    variants: tuple[tuple[int, ...], ...] = ()
    extents: tuple[tuple[int, ...], ...] = ()
    _number: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)

    @cached_property
    def is_off_scale(self) -> bool:
        return not all(on_scale(s) for axis in self.sizes for s in axis)

    @cached_property
    def shape(self) -> str:
        """What tells the records of one key apart."""
        if self.variants:
            return "packed" if self.complete else "packed reached"
        if not self.complete:
            return "reached"
        return ("off " if self.is_off_scale else "scale ") + "x".join(str(axis[-1]) for axis in self.sizes)

    def point(self, dims: Mapping[str, int], limit: int) -> tuple[int, ...] | None:
        """The grid point of sizes `dims`; None where the record of a single table has no such sizes."""
        if not self._number:
            for d, axis in zip(AXES, self.sizes, strict=True):
                self._number[d] = {s: i for i, s in enumerate(axis)}
        at = [self._number[d].get(dims[d], -1) for d in AXES]
        return None if -1 in at or not 0 <= limit < self.limits else (*at, limit)


# ---------------------------------------------------------------- bytes


def _sizes_json(axis: Sequence[int]) -> int | list[int]:
    """An axis that begins the scale as its length, any other as it is."""
    known = scale(axis[-1] + 1) if on_scale(axis[-1]) else []
    return len(axis) if list(axis) == known else list(axis)


def _sizes_from(value: Any) -> tuple[int, ...]:
    if isinstance(value, int):
        return tuple(scale(4 << value // 2)[:value])
    return tuple(int(x) for x in value)


def encode(record: Record) -> bytes:
    """The record as bytes, for `decode`. Boxes are sorted by action, then corner: equal columns compress best."""
    boxes = record.boxes
    order = np.lexsort((*boxes.lo.T[::-1], boxes.action)) if len(boxes) else np.zeros(0, np.int64)
    number = "<u1" if len(record.actions) <= 256 else "<u2"
    header = {
        "sizes": [_sizes_json(a) for a in record.sizes],
        "limits": record.limits,
        "variants": record.variants,
        "extents": record.extents,
        "actions": list(record.actions),
        "complete": record.complete,
        "specs": record.specs,
        "boxes": len(boxes),
        "point": boxes.lo.dtype.str,
        "number": number,
        "cost": boxes.cost is not None,
    }
    columns = [*boxes.lo[order].T, *(boxes.hi - boxes.lo)[order].T, boxes.action[order].astype(number)]
    if boxes.cost is not None:
        columns += [*boxes.cost[order].T.astype("<i8")]
    text = json.dumps(header, separators=(",", ":")).encode()
    data = struct.pack("<I", len(text)) + text + b"".join(np.ascontiguousarray(c).tobytes() for c in columns)
    payload = zlib.compress(data, 9)
    return _checksum(record.key, payload) + payload


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=CHECKSUM_BYTES, key=hashlib.blake2b(key.encode()).digest()).digest()


def decode(key: str, blob: bytes) -> Record:
    """Reads what `encode` wrote for `key`, sealed or not. Raises DamagedRecord."""
    return _decoded(key, blob)[0]


def _decoded(key: str, blob: bytes) -> tuple[Record, bytes]:
    """A record and its seal, empty where it has none. Raises DamagedRecord."""
    if not isinstance(blob, bytes):
        raise DamagedRecord("it is no bytes")
    if not _is_whole(key, blob):
        raise DamagedRecord("its checksum is wrong")
    stream = zlib.decompressobj()
    try:
        return _read(key, stream.decompress(blob[CHECKSUM_BYTES:])), stream.unused_data
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        raise DamagedRecord(f"it does not read as a record: {error}") from error


def _is_whole(key: str, blob: bytes) -> bool:
    return blob[:CHECKSUM_BYTES] == _checksum(key, blob[CHECKSUM_BYTES:])


def _read(key: str, data: bytes) -> Record:
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    sizes = tuple(_sizes_from(a) for a in header["sizes"])
    variants, extents = (tuple(tuple(int(c) for c in v) for v in header[name]) for name in ("variants", "extents"))
    shape = (*map(len, variants), *map(len, sizes), int(header["limits"]))
    count, at = int(header["boxes"]), 4 + length

    def take(kind: str, rows: int) -> np.ndarray:
        nonlocal at
        out = np.frombuffer(data, kind, rows * count, at).reshape(rows, count)
        at += out.nbytes
        return out

    lo = np.ascontiguousarray(take(header["point"], len(shape)).T)
    hi = lo + take(header["point"], len(shape)).T
    action = take(header["number"], 1)[0].astype(np.int32)
    cost = np.ascontiguousarray(take("<i8", 2).T) if header["cost"] else None
    if count and ((hi >= shape).any() or (action >= len(header["actions"])).any()):
        raise ValueError("boxes outside of the grid")
    boxes = Boxes(shape, lo, hi, action, cost)
    actions = tuple(str(a) for a in header["actions"])
    return Record(
        key, sizes, shape[-1], actions, boxes, bool(header["complete"]), int(header["specs"]), variants, extents
    )


# ---------------------------------------------------------------- rows


@dataclass(frozen=True, slots=True)
class Row:
    """A record as a file lists it."""

    space: str
    key: str
    shape: str
    target: str
    boxes: int
    specs: int
    data: bytes

    @staticmethod
    def of(values: Sequence[Any]) -> Row:
        """The columns of a file as a row. Raises DamagedRecord: they are of other types."""
        if [type(value) for value in values] != [str, str, str, str, int, int, bytes]:
            raise DamagedRecord("its columns are of other types")
        return Row(*values)

    @property
    def name(self) -> tuple[str, str, str]:
        """What it is found by."""
        return self.space, self.key, self.shape

    def record(self) -> Record:
        """The record. Raises DamagedRecord, also where another column is not what was written."""
        record, seal = _decoded(self.key, self.data)
        said = record.shape, len(record.boxes), record.specs
        if said != (self.shape, self.boxes, self.specs) or seal not in (b"", self._seal()):
            raise DamagedRecord("it is another record")
        return record

    def is_sealed(self) -> bool:
        """Whether all of it is what was written; False also for sound rows of earlier versions, without a seal."""
        return self.data[-SEAL_BYTES:] == self._seal() and _is_whole(self.key, self.data)

    def sealed(self) -> Row:
        """This row, which has no seal, with one."""
        payload = self.data[CHECKSUM_BYTES:] + self._seal()
        return replace(self, data=_checksum(self.key, payload) + payload)

    def _seal(self) -> bytes:
        columns = self.space, self.key, self.shape, self.target, self.boxes, self.specs
        return hashlib.blake2b(json.dumps(columns).encode(), digest_size=SEAL_BYTES).digest()


def row_of(space: str, target: str, record: Record) -> Row:
    """What a file keeps of `record`."""
    return Row(space, record.key, record.shape, target, len(record.boxes), record.specs, encode(record)).sealed()


# ---------------------------------------------------------------- actions


#: In the place of an action, in records that are not complete: it is known that a cell has no implementation.
IMPOSSIBLE = "impossible"


def action_from(label: str, key: TableKey) -> Action:
    """The action that a record calls `label`. Raises ScheduleError, SpecError."""
    name = label, key.function
    if name not in _actions:
        _actions[name] = _parsed(label, key)
    return _actions[name]


#: Actions by label and function, which is all that they depend on.
_actions: dict[tuple[str, str], Action] = {}


def _parsed(label: str, key: TableKey) -> Action:
    loop = label.startswith(("tile ", "split ", "parallel "))
    text = label if label.startswith("kernel ") else f"{label}:\n    ?" if loop else f"{label}\n?"
    return action_of(parse(text), spec_of(key, {"b": 1, "m": 1, "k": 1, "n": 1}, {}))


def used_only(choice: np.ndarray, labels: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """`choice` renumbered over the labels that occur in it."""
    used = np.unique(choice[choice >= 0])
    number = np.full(len(labels) + 1, NOTHING, np.int16)
    number[used] = np.arange(len(used))
    return number[choice], tuple(labels[i] for i in used)
