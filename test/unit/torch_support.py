"""For tests of torch's ops: a function compiled, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

from morello_mlir.frontends import torch as frontend  # noqa: E402

HALF = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def fresh() -> None:
    """The same random numbers in every test, and nothing of torch's from the one before."""
    torch.manual_seed(0)
    torch._dynamo.reset()


def check(function: Callable[..., Any], *inputs: Any, left: int = 0, tolerance: float = 1e-4) -> Any:
    """`function` compiled gives torch's numbers, and leaves so many ops to upstream."""
    function = function.eval() if isinstance(function, nn.Module) else function
    compiled = frontend.compile(function, inputs, threads=1)
    with torch.no_grad():
        got, wanted = compiled(*inputs), function(*inputs)
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert compiled.compiled.left == left, compiled.compiled.specs
    return compiled


def randn(*sizes: int) -> Any:
    """Random f32."""
    return torch.randn(*sizes)
