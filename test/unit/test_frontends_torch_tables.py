"""torch's ops that read rows or elements at places that numbers name, against torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_support  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_support import HALF, check, nn, randn  # noqa: E402

from morello_mlir.frontends import torch as frontend  # noqa: E402
from morello_mlir.runtime.program import AssertionFailed  # noqa: E402

fresh = torch_support.fresh


def ids(*shape, dtype=torch.int64, count=30):
    return torch.randint(0, count, shape, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, *HALF])
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_embedding(dtype, index):
    check(lambda w, i: F.embedding(i, w, padding_idx=1), randn(30, 70).to(dtype), ids(2, 9, dtype=index))


def test_embedding_of_a_module():
    check(nn.Sequential(nn.Embedding(30, 64), nn.LayerNorm(64)), ids(9))


def test_three_embeddings_and_a_norm():
    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.place, self.kind = nn.Embedding(30, 70), nn.Embedding(20, 70), nn.Embedding(2, 70)
            self.norm = nn.LayerNorm(70)

        def forward(self, i, k):
            return self.norm(self.word(i) + self.place(torch.arange(i.shape[1])) + self.kind(k))

    compiled = check(Bert(), ids(2, 9), ids(2, 9, count=2)).compiled
    (goal,) = [s["spec"] for s in compiled.specs if "gather" in s["spec"]]
    assert goal.count("gather") == 2 and goal.startswith("Compose")  # rows 0, 1, 2, ... are read as any others


@pytest.mark.parametrize("bad", [-1, 30])
def test_places_that_are_none(bad):
    w, i = randn(30, 7), ids(5)
    compiled = frontend.compile(lambda w, i: F.embedding(i, w), (w, i))
    with pytest.raises(AssertionFailed, match="index must be"):
        compiled(w, torch.tensor([1, 2, bad, 4, 5]))
    torch.testing.assert_close(compiled(w, i), F.embedding(i, w))


@pytest.mark.parametrize(
    "function",
    [
        lambda w, i: w[i],
        lambda w, i: w[-1 - i],
        lambda w, i: w[i, :, i % 7],
        lambda w, i: w[:, i % 9],
        lambda w, i: w[..., i % 7] + 1,
        lambda w, i: torch.index_select(w, 1, i % 9),
        lambda w, i: torch.take(w, i),
        lambda w, i: torch.gather(w, 0, i.reshape(5, 1, 1)),
        lambda w, i: w.sum(2)[i],
        lambda w, i: w[i].softmax(-1),
        lambda w, i: w[:, :, 0][w[:5, :, 0].argmax(1)],
    ],
)
def test_other_ops(function):
    w = randn(30, 9, 7)
    w[3] = float("nan")
    check(function, w, ids(5))


def test_bags():
    """As torch-mlir writes them, every bag looks at all elements: that is left to upstream."""
    w, i = randn(30, 7), ids(6)
    check(lambda w, i, o: F.embedding_bag(i, w, o, mode="sum"), w, i, torch.tensor([0, 2]), left=1)
