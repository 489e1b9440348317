"""Memory that starts where vectors, lines or pages do."""

from __future__ import annotations

import mmap

import pytest

from morello_mlir.aligned import HUGE_PAGE, LINE, PAGE, aligned, lasting


@pytest.mark.parametrize("alignment", [LINE, PAGE])
def test_zeros_at_a_multiple(alignment: int):
    room = aligned(1000, alignment, beyond=5)
    assert room.size == 1000 and room.ctypes.data % alignment == 0 and not room.any()


@pytest.mark.parametrize("size", [1, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 100])
def test_lasting_zeros_start_at_a_huge_page_where_they_fill_one(size: int):
    room = lasting(size)
    assert room.size == size and room.flags.writeable and not room.any()
    assert room.ctypes.data % (HUGE_PAGE if size >= HUGE_PAGE else LINE) == 0
    room[-1] = 1
    assert room.sum() == 1


def test_a_system_without_huge_pages(monkeypatch: pytest.MonkeyPatch):
    class Refuses(mmap.mmap):
        def madvise(self, *_: int) -> None:
            raise OSError

    monkeypatch.setattr(mmap, "mmap", Refuses)
    assert not lasting(2 * HUGE_PAGE).any()
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE")
    assert not lasting(2 * HUGE_PAGE).any()
