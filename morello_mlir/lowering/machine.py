"""What code generation asks of a target: vector lanes, registers, latency, and whether masked stores are cheap."""

from __future__ import annotations

from dataclasses import dataclass

from ..actions import in_flight
from ..spec import dtype_bytes, element_type
from ..targets import LINE, Target

#: Rows that a copying pack reads at once: they share the way through the panels, and few streams stay open.
PACK_ROWS = 4


@dataclass(frozen=True, slots=True)
class Machine:
    """A target, for contractions that are added up in one element type, `dtype`.

    lanes: elements of that type in a vector register. registers: how many there are. masks: a store under a mask costs
    what a store costs (AVX-512); elsewhere a partial vector is stored in pieces, since AVX2's masked stores are slow on
    some cores. in_flight: multiply-adds that must be under way at once. shuffles: they run beside multiply-adds. l2,
    l3: bytes of those caches that schedules count on.
    """

    dtype: str
    lanes: int
    registers: int
    masks: bool
    in_flight: int
    shuffles: bool = False
    l2: int = 1 << 20
    l3: int = 1 << 25

    @property
    def vector_bytes(self) -> int:
        return self.lanes * dtype_bytes(self.dtype)

    @staticmethod
    def of(target: Target, dtype: str) -> Machine:
        masks = "+avx512vl" in target.features
        flight, l2 = in_flight(target), target.l2.lines * LINE
        lanes, l3 = target.lanes(dtype), target.l3_bytes
        return Machine(dtype, lanes, target.registers, masks, flight, target.shuffles, l2, l3)

    def vector(self, lanes: int | None = None, dtype: str | None = None) -> str:
        """The MLIR type of a vector of `lanes` elements (None: a register of sums) of `dtype` (None: that of sums)."""
        return f"vector<{lanes or self.lanes}x{element_type(dtype or self.dtype)}>"

    @staticmethod
    def split(width: int, widest: int) -> list[tuple[int, int]]:
        """`width` elements as (start, size) pieces whose sizes are powers of two up to `widest`, widest first."""
        out, at, piece = [], 0, widest
        while at < width:
            while piece > width - at:
                piece //= 2
            out.append((at, piece))
            at += piece
        return out
