"""torch's ops that move elements, enlarge images or pick elements: right against torch, and computed by our code."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_support  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_support import HALF, check, randn  # noqa: E402

from morello_mlir.frontends import decompositions  # noqa: E402
from morello_mlir.frontends import torch as frontend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
fresh = torch_support.fresh

MOVES = [
    lambda x: x.transpose(1, 2).contiguous(),
    lambda x: x.permute(2, 0, 1).contiguous(),
    lambda x: x.reshape(6, 15).t() + 1,
    lambda x: torch.cat([x, 2 * x], 1),
    lambda x: torch.cat([x, x[:, :2], x], 1),
    lambda x: torch.stack([x, x + 1], 1),
    lambda x: x.chunk(2, 2)[1] + 1,
    lambda x: torch.split(x, [2, 3], 1)[1] * 2,
    lambda x: x[:, 1:4, ::2] + 1,
    lambda x: torch.roll(x, 2, 1),
    lambda x: x.repeat(1, 2, 1),
    lambda x: x.repeat_interleave(2, 1),
    lambda x: x.expand(4, 3, 5, 6) + 1,
    lambda x: F.pad(x, (1, 2)),
    lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    lambda x: F.pad(x, (2, 1), mode="reflect"),
    lambda x: F.pad(x, (2, 1), mode="replicate"),
    lambda x: F.pad(x, (2, 1), mode="circular"),
    lambda x: F.pad(x, (-1, 2)),
    lambda x: F.pad(x[None], (1, 2, 2, 1), mode="reflect"),
    lambda x: F.pad(x[None], (1, 2, 2, 1), mode="replicate"),
    lambda x: torch.tril(x),
    lambda x: torch.triu(x, 1),
    lambda x: x.unfold(2, 3, 1) + 0,
    lambda x: F.pixel_shuffle(x[None, :, :4, :].reshape(1, 4, 3, 6), 2),
    lambda x: F.pixel_unshuffle(x[None, :, :4], 2),
    lambda x: F.channel_shuffle(x.reshape(1, 6, 3, 5), 2),
    lambda x: x.unsqueeze(1).squeeze(0) + 1,
    lambda x: F.one_hot((x[0] > 0).long(), 3),
    lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")[0] + 1,
    lambda x: x.flatten(1) @ x.flatten(1).T,
    lambda x: torch.movedim(x, 0, 2) * 2,
    lambda x: x.new_zeros(3) + x[:, 0, 0],
    lambda x: torch.arange(6) + x,
]


@pytest.mark.parametrize("at", range(len(MOVES)))
def test_moves(at):
    check(MOVES[at], randn(3, 5, 6))


#: All of it is ours: elements that are picked by numbers of their own, too.
SCALES = {
    "nearest": {"scale_factor": 2, "mode": "nearest"},
    "nearest, uneven": {"scale_factor": (3, 1), "mode": "nearest"},
    "nearest, to a size": {"size": (8, 18), "mode": "nearest"},
    "nearest, not whole": {"size": (7, 11), "mode": "nearest"},
    "bilinear": {"scale_factor": 2, "mode": "bilinear"},
    "bilinear, threefold": {"scale_factor": 3, "mode": "bilinear"},
    "bilinear, corners": {"scale_factor": 2, "mode": "bilinear", "align_corners": True},
    "bilinear, smaller": {"size": (3, 4), "mode": "bilinear"},
    "bicubic": {"scale_factor": 2, "mode": "bicubic"},
    "area": {"size": (2, 3), "mode": "area"},
}


@pytest.mark.parametrize("name", SCALES)
def test_interpolation(name):
    check(lambda x: F.interpolate(x, **SCALES[name]), randn(1, 3, 4, 6))


@pytest.mark.parametrize(("mode", "factor"), [("nearest", 1.2), ("nearest", 2.2), ("nearest", 3.4), ("bilinear", 2.2)])
def test_factors_that_are_not_whole(mode, factor):
    # The size is a multiple, but elements come unevenly: by the factor. (Not by torch twice as many in `nearest`.)
    check(lambda x: F.interpolate(x, scale_factor=factor, mode=mode) * 3, randn(1, 3, 2, 2))


def test_interpolation_of_bytes_rounds():
    x = torch.randint(0, 256, (1, 3, 4, 6), dtype=torch.uint8)
    assert decompositions.table()[torch.ops.aten.upsample_bilinear2d.vec](x, None, False, [2.0, 2.0]).dtype == x.dtype


@pytest.mark.parametrize("dtype", HALF)
def test_interpolation_of_halves_is_in_single(dtype):
    x = randn(1, 3, 4, 6).to(dtype)
    compiled = frontend.compile(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (x,), threads=1)
    wanted = F.interpolate(x.float(), scale_factor=2, mode="bilinear").to(dtype)
    torch.testing.assert_close(compiled(x), wanted, rtol=0, atol=0)


def test_interpolation_of_one_and_three_dims():
    check(lambda x: F.interpolate(x, scale_factor=2), randn(1, 3, 6))
    check(lambda x: F.interpolate(x, scale_factor=2, mode="linear"), randn(1, 3, 6))
    check(lambda x: F.interpolate(x, scale_factor=2), randn(1, 2, 3, 4, 5))


GATHERS = [
    lambda x, i: F.embedding(i, x),
    lambda x, i: x[i],
    lambda x, i: torch.index_select(x, 0, i),
    lambda x, i: torch.gather(x, 0, i[:, None].expand(4, 6)),
    lambda x, i: x[:, i % 6],
    lambda x, i: x[i, i % 6],
    lambda x, i: torch.take_along_dim(x, i[:, None], 0),
    lambda x, i: F.cross_entropy(x[:4], i % 6),
    lambda x, i: x.flip(0),
    lambda x, i: torch.diagonal(x) + 1,
    lambda x, i: F.unfold(x[None, None], 2),
]


@pytest.mark.parametrize("at", range(len(GATHERS)))
def test_gathers(at):
    check(GATHERS[at], randn(9, 6), torch.tensor([3, 8, 0, 3]))


def test_no_elements():
    check(lambda x: F.relu(x) + 1, randn(0, 3))
    check(lambda x: 3 * x.sum(0), randn(0, 3))
