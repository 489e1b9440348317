"""torch's ops of bytes: right against torch, or refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_support  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_support import check  # noqa: E402

from morello_mlir.errors import CompileError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
fresh = torch_support.fresh


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_products_of_bytes_wrap_around(dtype):
    x, y = (torch.randint(-128 if dtype.is_signed else 0, 128, (5, 5)).to(dtype) for _ in range(2))
    for function in (torch.mm, lambda x, y: torch.bmm(x[None], y[None]), lambda x, y: F.linear(x, y, x[0])):
        check(function, x, y, tolerance=0)


def test_unsigned_bytes_are_their_own_absolute_values():
    x = torch.arange(256, dtype=torch.uint8)
    check(torch.abs, x, tolerance=0)
    check(lambda x: x.reshape(-1, 1).abs() > 100, x, tolerance=0)
    check(torch.abs, x.view(torch.int8), tolerance=0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x / 255, x * 0.5, x + 2.5, x.float()),
        lambda x, y: (x < 200, x > 100.5, x == 200, x < y),
        lambda x, y: (x.sum(0), x.sum(), x.cumsum(0)),
        lambda x, y: (torch.clamp(x, max=200), x + x),
        lambda x, y: (x * y, torch.maximum(x, y), torch.cat([x, y]), torch.where(x > 3, x, y)),
        lambda x, y: (x.amax(0), x.argmax(0)),
    ],
)
def test_unsigned_bytes_have_no_sign(function):
    x = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    y = torch.arange(-128, 128, dtype=torch.int16).reshape(16, 16)
    check(function, x, y, tolerance=1e-6)


@pytest.mark.parametrize("op", [torch.remainder, torch.fmod, lambda x, y: torch.clamp(x, max=y)])
def test_what_would_take_unsigned_bytes_for_signed_ones_is_refused(op):
    x = torch.arange(1, 256, dtype=torch.uint8)
    with pytest.raises(CompileError, match="of unsigned bytes"):
        check(op, x, x)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.max_pool3d])
def test_pooling_of_unsigned_bytes_is_refused(pool):
    with pytest.raises(CompileError, match="of unsigned bytes"):
        check(lambda x: pool(x, 2), torch.arange(256, dtype=torch.uint8).reshape(4, 4, 4, 4))


def test_convolutions_of_bytes_are_refused():
    x = torch.ones(1, 2, 5, dtype=torch.int8)
    with pytest.raises(CompileError, match="of bytes"):
        check(lambda x: F.conv1d(x, x[:, :, :3]), x)
