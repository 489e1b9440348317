"""torch's ops one by one: right against torch, and computed by our code where it is said."""

from __future__ import annotations

import copy
import math
import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_support  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch_support import HALF, check, randn  # noqa: E402

from morello_mlir.frontends import EagerFallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
fresh = torch_support.fresh

CONVOLUTIONS = {
    "1d": (nn.Conv1d(3, 8, 3), (2, 3, 17)),
    "1d, strided, padded": (nn.Conv1d(3, 8, 5, stride=2, padding=3), (2, 3, 17)),
    "2d": (nn.Conv2d(3, 8, 3, padding=1), (2, 3, 9, 7)),
    "2d, dilated": (nn.Conv2d(3, 8, 3, dilation=2, padding=2), (1, 3, 9, 11)),
    "2d, of 1x1": (nn.Conv2d(5, 7, 1), (2, 5, 6, 7)),
    "2d, uneven": (nn.Conv2d(3, 4, (1, 5), stride=(2, 1), padding=(0, 2)), (1, 3, 9, 7)),
    "2d, same": (nn.Conv2d(3, 4, 4, padding="same"), (1, 3, 9, 7)),
    "2d, reflected": (nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect"), (1, 3, 9, 7)),
    "2d, circular": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (1, 3, 9, 7)),
    "2d, grouped": (nn.Conv2d(8, 12, 3, groups=4, padding=1), (2, 8, 7, 6)),
    "2d, grouped, strided": (nn.Conv2d(8, 12, 3, groups=2, stride=2), (2, 8, 9, 8)),
    "2d, depthwise": (nn.Conv2d(6, 6, 3, groups=6, padding=1), (2, 6, 7, 8)),
    "2d, depthwise, strided": (nn.Conv2d(6, 6, 5, groups=6, padding=2, stride=2), (1, 6, 11, 9)),
    "2d, depthwise, multiplied": (nn.Conv2d(4, 8, 3, groups=4), (1, 4, 7, 8)),
    "1d, depthwise": (nn.Conv1d(6, 6, 3, groups=6, padding=1), (2, 6, 17)),
    "3d": (nn.Conv3d(3, 4, 3, padding=1), (1, 3, 5, 6, 7)),
    "3d, strided": (nn.Conv3d(3, 4, 3, stride=2), (1, 3, 7, 6, 7)),
    "3d, grouped": (nn.Conv3d(4, 4, 3, groups=2), (1, 4, 5, 6, 7)),
    "transposed 1d": (nn.ConvTranspose1d(3, 5, 4, stride=2, padding=1), (2, 3, 9)),
    "transposed 2d": (nn.ConvTranspose2d(3, 5, 3), (2, 3, 6, 7)),
    "transposed 2d, strided": (nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1), (2, 3, 6, 7)),
    "transposed 2d, output padding": (nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1), (1, 3, 6, 7)),
    "transposed 2d, dilated": (nn.ConvTranspose2d(3, 5, 3, dilation=2), (1, 3, 6, 7)),
    "transposed 2d, grouped": (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (1, 4, 5, 6)),
    "transposed 3d": (nn.ConvTranspose3d(3, 4, 2, stride=2), (1, 3, 4, 5, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    module, shape = CONVOLUTIONS[name]
    check(module, randn(*shape))


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", ["2d", "1d", "2d, grouped", "2d, depthwise"])
def test_convolutions_of_half_precision(name, dtype):
    module, shape = CONVOLUTIONS[name]
    check(copy.deepcopy(module).to(dtype), randn(*shape).to(dtype), tolerance=4e-2)


POOLS = {
    "max": (nn.MaxPool2d(3, 2, 1), (2, 3, 9, 8)),
    "max 1d": (nn.MaxPool1d(2), (2, 3, 9)),
    "max 3d": (nn.MaxPool3d(2), (1, 3, 4, 6, 5)),
    "max, dilated": (nn.MaxPool2d(2, 1, dilation=2), (1, 3, 9, 8)),
    "max, ceil": (nn.MaxPool2d(2, 2, ceil_mode=True), (1, 3, 9, 7)),
    "average": (nn.AvgPool2d(3, 2, 1), (2, 3, 9, 8)),
    "average, borders not counted": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), (2, 3, 9, 8)),
    "average 1d": (nn.AvgPool1d(3), (2, 3, 9)),
    "average 3d": (nn.AvgPool3d(2), (1, 3, 4, 6, 4)),
    "average, other divisor": (nn.AvgPool2d(2, divisor_override=3), (1, 3, 6, 6)),
    "adaptive average": (nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 9, 8)),
    "adaptive average, to one": (nn.AdaptiveAvgPool2d(1), (2, 3, 9, 8)),
    "adaptive average 1d": (nn.AdaptiveAvgPool1d(3), (2, 3, 9)),
    "adaptive max": (nn.AdaptiveMaxPool2d((3, 2)), (2, 3, 9, 8)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools(name):
    module, shape = POOLS[name]
    check(module, randn(*shape))


NORMS = {
    "layer": (nn.LayerNorm(9), (4, 9)),
    "layer of two dims": (nn.LayerNorm((5, 9)), (4, 5, 9)),
    "group": (nn.GroupNorm(2, 6), (2, 6, 5, 4)),
    "instance": (nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 4)),
    "rms": (nn.RMSNorm(9), (4, 9)),
    "batch": (nn.BatchNorm2d(3), (2, 3, 5, 4)),
    "local response": (nn.LocalResponseNorm(2), (2, 4, 5, 3)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    module, shape = NORMS[name]
    check(module, randn(*shape))


@pytest.mark.parametrize("name", ["layer", "group", "rms"])
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_norms_of_half_precision(name, dtype):
    module, shape = NORMS[name]
    check(copy.deepcopy(module).to(dtype), randn(*shape).to(dtype), tolerance=2e-2)


def test_batch_norm_with_the_statistics_of_the_batch():
    check(lambda x: F.batch_norm(x, None, None, training=True), randn(4, 3, 5, 6))


ACTIVATIONS = [
    F.relu,
    F.relu6,
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    F.silu,
    F.mish,
    F.softplus,
    F.elu,
    F.selu,
    F.celu,
    F.leaky_relu,
    F.hardswish,
    F.hardsigmoid,
    F.hardtanh,
    F.softsign,
    F.logsigmoid,
    F.tanhshrink,
    F.hardshrink,
    F.softshrink,
    lambda x: F.threshold(x, 0.1, 20.0),
    torch.sigmoid,
    torch.tanh,
    torch.erf,
    torch.exp,
    torch.sin,
    torch.cos,
    torch.abs,
    torch.sign,
    torch.floor,
    torch.round,
    lambda x: torch.log(x * x + 1),
    torch.expm1,
    lambda x: torch.log1p(x * x),
    lambda x: torch.sqrt(x * x),
    lambda x: torch.rsqrt(x * x + 1),
    torch.reciprocal,
    lambda x: x**2,
    lambda x: (x * x) ** 0.3,
    lambda x: x**3,
    lambda x: torch.clamp(x, -0.5),
    torch.atan,
    torch.nan_to_num,
    lambda x: torch.where(x > 0, x, 2 * x),
    lambda x: x.masked_fill(x < 0, -5.0),
    lambda x: torch.remainder(x, 0.7),
    lambda x: torch.lerp(x, 2 * x, 0.3),
    lambda x: torch.addcmul(x, x, x, value=0.5),
    lambda x: F.glu(x[:, :6]),
    lambda x: F.prelu(x, torch.tensor([0.2])),
    torch.frac,
    torch.trunc,
    torch.logit,
    lambda x: 1 / torch.relu(x),
    lambda x: x.relu().reciprocal(),
    torch.isnan,
    lambda x: x.to(torch.int32),
    lambda x: x > 0.3,
]


@pytest.mark.parametrize("at", range(len(ACTIVATIONS)))
def test_elementwise(at):
    check(ACTIVATIONS[at], randn(5, 7))


REDUCTIONS = [
    lambda x: x.sum(),
    lambda x: x.sum(1),
    lambda x: x.mean((0, 2)),
    lambda x: x.amax(1),
    lambda x: x.amin((1, 2)),
    lambda x: x.max(1).values,
    lambda x: x.max(1).indices,
    lambda x: x.argmax(2),
    lambda x: x.argmin(0),
    lambda x: x.prod(1),
    lambda x: x.var(1),
    lambda x: x.std(2, correction=0),
    lambda x: x.norm(dim=1),
    lambda x: torch.linalg.vector_norm(x),
    lambda x: torch.logsumexp(x, 1),
    lambda x: F.softmax(x, 1),
    lambda x: F.log_softmax(x, -1),
    lambda x: F.softmin(x, 0),
    lambda x: (x > 0).any(1),
    lambda x: (x > -9).all(2),
    lambda x: F.normalize(x, dim=1),
    lambda x: torch.var_mean(x, 1),
    lambda x: torch.cumsum(x, 1),
    lambda x: torch.cumprod(x, 2),
    lambda x: torch.cumsum(x > 0, 0),
    lambda x: torch.cumsum(torch.cat([x, x / 0, x], 1), 1),
    lambda x: F.cosine_similarity(x, x * x + 1, dim=2),
    lambda x: F.mse_loss(x, 2 * x),
    lambda x: (x > 0).sum(1),
]


@pytest.mark.parametrize("at", range(len(REDUCTIONS)))
def test_reductions(at):
    check(REDUCTIONS[at], randn(3, 5, 6))


PLACES = [
    lambda x: x.argmax(2),
    lambda x: x.argmax(1, keepdim=True),
    lambda x: x.argmin(-1),
    lambda x: x.argmin(None, True),
    lambda x: x.argmax(),
    lambda x: x.max(0, keepdim=True).indices,
    lambda x: x.min(1).indices,
    lambda x: x.half().argmax(2),
    lambda x: (x.nan_to_num(9) * 4).int().argmax(2),
]


@pytest.mark.parametrize("at", range(len(PLACES)))
def test_where_extremes_are(at):
    x = randn(3, 5, 6)
    x[0, 1, 3] = x[0, 1, 5] = x[2, 0, 0] = torch.nan
    x[1, 2], x[2, 3] = torch.inf, -torch.inf
    x[1, 0, 2] = x[1, 0, 4]
    check(PLACES[at], x)
    check(PLACES[at], torch.tensor([[[-0.0, 0.0]]]))


def test_variances_of_too_little():
    check(torch.var, randn(1))
    check(lambda x: torch.var_mean(x, 1), randn(3, 1))
    check(lambda x: torch.var(x, correction=0), torch.tensor(2.0))


UNKNOWN = [
    (lambda x: torch.sort(x).values, "sort"),
    (lambda x: torch.topk(x, 2).indices, "topk|sort"),
    (lambda x: x.median(), "median"),
    (lambda x: torch.cdist(x, x), "cdist"),
    (lambda x: x.index_add(0, torch.tensor([1, 1]), torch.ones(2, 6)), "scatter"),
    (lambda x: torch.bincount((x > 0).flatten().long()), "bincount|Bincount|size|depend"),
    (lambda x: torch.unique(x), "unique|size|depend"),
]


@pytest.mark.parametrize("at", range(len(UNKNOWN)))
def test_what_runs_in_torch(at):
    """With a warning that names what is missing."""
    function, names = UNKNOWN[at]
    x = randn(5, 6)
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = torch.compile(function, backend="morello", options={"threads": 1})(x)
    torch.testing.assert_close(got, function(x))
    said = [str(w.message) for w in caught if w.category is EagerFallback]
    assert all(re.search(names, each) for each in said), said


PRODUCTS = {
    "mm": (lambda x, y: x @ y, (5, 7), (7, 3)),
    "bmm": (lambda x, y: torch.bmm(x, y), (2, 5, 7), (2, 7, 3)),
    "broadcast": (lambda x, y: x @ y, (2, 3, 5, 7), (7, 3)),
    "broadcast batch": (lambda x, y: x @ y, (2, 1, 5, 7), (3, 7, 4)),
    "mv": (lambda x, y: x @ y, (5, 7), (7,)),
    "dot": (lambda x, y: torch.dot(x, y), (7,), (7,)),
    "outer": (lambda x, y: torch.outer(x, y), (7,), (5,)),
    "addmm": (lambda x, y: torch.addmm(x[:, :3], x, y, alpha=0.5, beta=2.0), (5, 7), (7, 3)),
    "baddbmm": (lambda x, y: torch.baddbmm(x[:, :, :3], x, y), (2, 5, 7), (2, 7, 3)),
    "linear": (lambda x, y: F.linear(x, y), (2, 5, 7), (3, 7)),
    "bilinear": (lambda x, y: F.bilinear(x, x, y), (4, 5), (3, 5, 5)),
    "tensordot": (lambda x, y: torch.tensordot(x, y, ([1, 2], [0, 1])), (4, 5, 6), (5, 6, 3)),
    "einsum, attention": (lambda x, y: torch.einsum("bihd,bjhd->bhij", x, y), (2, 5, 3, 4), (2, 6, 3, 4)),
    "einsum, outer": (lambda x, y: torch.einsum("bi,bj->bij", x, y), (2, 5), (2, 6)),
    "einsum, two sums": (lambda x, y: torch.einsum("bijk,jkl->bil", x, y), (2, 5, 3, 4), (3, 4, 7)),
    "einsum, diagonal": (lambda x, y: torch.einsum("bik,bik->b", x, y), (2, 5, 3), (2, 5, 3)),
    "both transposed": (lambda x, y: x.T @ y.T, (7, 5), (3, 7)),
    "chain": (lambda x, y: x @ y @ y.T, (5, 7), (7, 3)),
    "of heads": (
        lambda x, y: x.view(1, 5, 2, 4).transpose(1, 2) @ y.view(1, 6, 2, 4).permute(0, 2, 3, 1),
        (5, 8),
        (6, 8),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    function, *shapes = PRODUCTS[name]
    check(function, *(randn(*shape) for shape in shapes))


def attention(dtype: Any, groups: int = 1, **options: Any) -> Any:
    q, k, v = randn(1, 4, 9, 8), randn(1, 4 // groups, 11, 8), randn(1, 4 // groups, 11, 6)
    mask = options.pop("mask", None)
    inputs = [t.to(dtype) for t in (q, k, v)] + ([] if mask is None else [mask])

    def run(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=groups > 1, **options)

    return check(run, *inputs, tolerance=1e-4 if dtype == torch.float32 else 3e-2)


ATTENTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
    "of groups": {"groups": 2},
    "of groups, causal": {"groups": 4, "is_causal": True},
    "bool mask": {"mask": torch.rand(9, 11) > 0.4},
    "a row that attends to nothing": {"mask": torch.arange(9)[:, None] > torch.arange(11)},
    "added mask": {"mask": 0.1 * torch.arange(99.0).reshape(9, 11)},
    "added mask of heads": {"mask": torch.arange(44.0).reshape(1, 4, 1, 11) % 7},
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name):
    compiled = attention(torch.float32, **ATTENTIONS[name])
    assert sum(s["spec"].startswith("Chain(") for s in compiled.compiled.specs) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["bool", "added"])
@pytest.mark.parametrize("shape", [(3, 1, 1, 11), (3, 1, 9, 11), (1, 4, 9, 11), (1, 4, 1, 11), (3, 4, 9, 11)], ids=str)
def test_masks_of_sequences_and_of_heads_stay_in_the_chain(shape, kind, dtype):
    q, k, v = (randn(3, 4, rows, 8).to(dtype) for rows in (9, 11, 11))
    mask = torch.rand(shape) > 0.3 if kind == "bool" else randn(*shape).to(dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    compiled = check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, mask, tolerance=tolerance)
    assert sum(s["spec"].startswith("Chain(") for s in compiled.compiled.specs) == 1


def _hidden(x: Any) -> Any:
    return x.masked_fill(torch.triu(torch.ones(x.shape[-2:], dtype=torch.bool), 2), -math.inf)


def _seen(x: Any) -> Any:
    i, j = torch.arange(x.shape[-2]), torch.arange(x.shape[-1])
    return torch.where(j <= i[:, None], x, -math.inf)


CAUSAL = {
    "is_causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), "0 above 0"),
    "masked_fill of triu": (lambda q, k, v: torch.softmax(_hidden(q @ k.transpose(-2, -1)), -1) @ v, "1 above 1"),
    "where of aranges": (lambda q, k, v: torch.softmax(_seen(q @ k.transpose(-2, -1)), -1) @ v, "0 above 0"),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_what_causal_masks_hide_is_known(name):
    function, known = CAUSAL[name]
    compiled = check(function, *(randn(1, 2, 130, 16) for _ in range(3)))
    (chain,) = (s["spec"] for s in compiled.compiled.specs if s["spec"].startswith("Chain("))
    assert f" = {known}" in chain


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_of_half_precision(name, dtype):
    """One chain, too: scores in single precision, weights rounded once."""
    options = dict(ATTENTIONS[name])
    if "mask" in options and options["mask"].is_floating_point():
        options["mask"] = options["mask"].to(dtype)
    compiled = attention(dtype, **options)
    assert sum(s["spec"].startswith("Chain(") for s in compiled.compiled.specs) == 1


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_layers_of_half_precision(dtype):
    """Attention is a chain, and weights are packed in the type that they have."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, norm_first=True).to(dtype)
    compiled = check(layer, randn(1, 72, 32).to(dtype), tolerance=3e-2)
    specs = [s["spec"] for s in compiled.compiled.specs]
    assert compiled.compiled.left == 0 and sum(s.startswith("Chain(") for s in specs) == 1
    short = {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
    assert sum(f"({short}, GL, row_major, const)" in s for s in specs) == 4


@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
@pytest.mark.parametrize("at", ["query", "key", "value"])
def test_attention_with_infinities_and_nan(at, dtype):
    """A row of infinities, an element that is none, and what comes of them, as torch has it."""
    q, k, v = (randn(1, 2, 20, 16).to(dtype) for _ in range(3))
    where = {"query": q, "key": k, "value": v}[at]
    where[0, 0, 3] = math.inf if at != "key" else -math.inf
    where[0, 1, 5, 2] = math.nan
    check(F.scaled_dot_product_attention, q, k, v, tolerance=1e-4 if dtype == torch.float32 else 3e-2)


RECURRENT = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent(name):
    module = RECURRENT[name](5, 7, batch_first=True)
    check(lambda x: module(x)[0], randn(2, 4, 5))


def test_transformer_layers():
    check(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), randn(1, 5, 16))
    check(nn.MultiheadAttention(16, 2, batch_first=True), *(randn(1, 5, 16) for _ in range(3)))


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "both"])
@pytest.mark.parametrize("form", ["relu", "gelu", "norm first"])
def test_transformer_layers_without_gradients(form, mask):
    """torch calls one op for the whole layer then."""
    options: Any = {"norm_first": form == "norm first", "activation": "relu" if form == "relu" else "gelu"}
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **options).eval()
    padding = torch.tensor([[mask == "padding"] * 5, [False] * 3 + [True] * 2]) if mask in ("padding", "both") else None
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1) if mask in ("causal", "both") else None
    compiled = torch.compile(layer, backend="morello", options={"threads": 1})
    x = randn(2, 5, 16)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("error", EagerFallback)
        wanted = layer(x, src_mask=causal, src_key_padding_mask=padding)
        got = compiled(x, src_mask=causal, src_key_padding_mask=padding)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_attention_modules_without_gradients(wanted, averaged):
    module = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = randn(2, 5, 16)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("error", EagerFallback)
        compiled = torch.compile(
            lambda x: module(x, x, x, need_weights=wanted, average_attn_weights=averaged), backend="morello"
        )
        torch.testing.assert_close(
            compiled(x), module(x, x, x, need_weights=wanted, average_attn_weights=averaged), rtol=1e-4, atol=1e-5
        )


def test_attention_with_heads_inside():
    """Of a module, whose heads lie inside of the sequence: one chain."""
    module = nn.MultiheadAttention(48, 3, batch_first=True).eval()
    mask = torch.triu(torch.full((40, 40), -math.inf), 1)
    compiled = check(lambda x: module(x, x, x, attn_mask=mask, need_weights=False)[0], randn(1, 40, 48))
    assert sum(s["spec"].startswith("Chain(") for s in compiled.compiled.specs) == 1


def test_rotary_embeddings():
    angles = torch.outer(torch.arange(5.0), 10 ** -torch.arange(4.0))

    def rotate(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)

    check(rotate, randn(2, 3, 5, 8))


def test_integers():
    x = torch.arange(12).reshape(3, 4)
    check(lambda x: (x * 3 - 1) // 2, x)
    check(lambda x: x.sum(1) % 5, x)
    check(lambda x: x @ x.T, x.to(torch.int32))
    check(lambda x: (x & 3) | (x << 2), x)


def test_double_precision():
    check(lambda x: F.softmax(x @ x.T, -1), torch.randn(5, 6, dtype=torch.float64))
    check(nn.Conv2d(3, 4, 3).double(), torch.randn(1, 3, 6, 5, dtype=torch.float64))
