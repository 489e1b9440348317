"""torch: graphs become programs that give torch's numbers, or run in torch with a word about why."""

from __future__ import annotations

import itertools
import math
import time
import warnings

import pytest
from thread_support import at_once

from morello_mlir.errors import CompileError, InputError
from morello_mlir.frontends import EagerFallback
from morello_mlir.memo import memo as memo_module
from morello_mlir.memo.store import Store
from morello_mlir.targets import get_target

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from morello_mlir.frontends import torch as frontend  # noqa: E402
from morello_mlir.frontends.fx import graph_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
ONE = {"threads": 1}


@pytest.fixture(autouse=True)
def _fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


def same(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


def close_to_torch(module, *inputs):
    """The module compiled, checked once."""
    module = module.eval() if isinstance(module, nn.Module) else module
    compiled = frontend.compile(module, inputs, **ONE)
    with torch.no_grad():
        same(compiled(*inputs), module(*inputs))
    return compiled


def layers(*each):
    return nn.Sequential(*each)


def trained(module):
    """Batch normalisations with statistics that are not those of a new module."""
    for each in module.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            each.running_mean.normal_()
            each.running_var.uniform_(0.5, 2)
            if each.affine:
                each.weight.data.normal_()
                each.bias.data.normal_()
    return module


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options)


def test_a_perceptron_with_its_weights_inside():
    compiled = close_to_torch(layers(nn.Linear(7, 13), nn.ReLU(), nn.Linear(13, 5)), torch.randn(3, 7))
    assert compiled.compiled.lifted >= 2
    assert len(compiled.compiled.functions["main"].signature.inputs) == 1


@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_goes_into_the_convolution(bias):
    module = trained(layers(nn.Conv2d(3, 5, 3, padding=1, stride=2, bias=bias), nn.BatchNorm2d(5), nn.ReLU())).eval()
    x = torch.randn(2, 3, 9, 7)
    text = graph_of(module, (x,)).text
    assert "rsqrt" not in text and "mulf" not in text.partition("conv_2d")[2]
    close_to_torch(module, x)


@pytest.mark.parametrize(
    "module, shape",
    [
        (nn.BatchNorm1d(6), (4, 6)),
        (layers(nn.ConvTranspose2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)), (1, 3, 5, 4)),
        (layers(nn.BatchNorm2d(3, affine=False), nn.Conv2d(3, 2, 1)), (1, 3, 5, 4)),
    ],
    ids=["alone", "transposed", "before"],
)
def test_batch_norm_elsewhere(module, shape):
    close_to_torch(trained(module), torch.randn(shape))


@pytest.mark.parametrize(
    "module",
    [
        nn.LayerNorm(11),
        nn.LayerNorm((5, 11), elementwise_affine=False),
        nn.Softmax(-1),
        nn.Softmax(0),
        nn.LogSoftmax(1),
        nn.GELU(),
        nn.GELU(approximate="tanh"),
        nn.SiLU(),
        nn.ReLU6(),
    ],
    ids=str,
)
def test_what_is_decomposed_our_way(module):
    close_to_torch(module, torch.randn(3, 5, 11))


def test_a_cell_applied_to_every_step_has_its_weights_once():
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTMCell(5, 6), nn.Linear(6, 6)
            self.tied = nn.Linear(6, 6)
            self.tied.weight = self.head.weight

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 6)
            for step in x.unbind(1):
                h, c = self.cell(step, (h, c))
            return self.tied(self.head(h))

    module, x = Sequence().eval(), torch.randn(2, 4, 5)
    close_to_torch(module, x)
    weights = [c for c in graph_of(module, (x,)).constants.values() if c.ndim == 2]
    # Of the cell for x and for h, what the first h, which is zero, makes, and one for both linear layers.
    assert sorted(c.shape for c in weights) == [(2, 24), (5, 24), (6, 6), (6, 24)]


@pytest.mark.parametrize("dim, steps, products", [(0, 4, 1), (1, 4, 1), (1, 2, 2)], ids=["first", "second", "few"])
def test_products_of_steps_are_one(dim, steps, products):
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(5, 7)

        def forward(self, x):
            y = self.linear(x.select(dim, 0))
            for i in range(1, steps):
                y = torch.tanh(y) + self.linear(x.select(dim, i))
            return y

    shape = [2, 2, 5]
    shape[dim] = 4
    module, x = Steps().eval(), torch.randn(shape)
    assert graph_of(module, (x,)).text.count("linalg.matmul") == products
    close_to_torch(module, x)


def test_softmax_keeps_nan_and_infinity():
    x = torch.tensor([[1.0, math.nan, 2.0], [math.inf, 1.0, 0.0], [-math.inf, 0.0, 1.0]])
    torch.testing.assert_close(frontend.compile(nn.Softmax(-1), (x,), **ONE)(x), x.softmax(-1), equal_nan=True)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}], ids=str)
def test_attention(options):
    close_to_torch(Attention(**options), *(torch.randn(1, 2, 7, 8) for _ in range(3)))


def test_attention_with_a_row_that_is_masked_out():
    mask = torch.ones(7, 7, dtype=torch.bool).tril(-1)
    close_to_torch(Attention(), *(torch.randn(1, 2, 7, 8) for _ in range(3)), mask)


def test_inference_tensors():
    with torch.inference_mode():
        x = torch.randn(3, 4)
    close_to_torch(nn.Linear(4, 2), x)


def test_structures_go_in_and_come_out():
    def function(pair, *, scale):
        a, b = pair
        return {"sum": a + b, "rest": (a * scale, b)}

    a, b = torch.randn(3, 4), torch.randn(3, 4)
    compiled = frontend.compile(function, ((a, b),), {"scale": 2.5}, **ONE)
    got = compiled((a, b), scale=2.5)
    same(got["sum"], a + b)
    same(got["rest"][0], 2.5 * a)
    assert got["rest"][1] is b
    with pytest.raises(InputError, match="structured"):
        compiled(a, b, scale=2.5)
    with pytest.raises(InputError, match=r"input 2 is 3\.5, and was 2\.5"):
        compiled((a, b), scale=3.5)
    with pytest.raises(InputError, match=r"float32 \[3, 5\], and was torch.float32 \[3, 4\]"):
        compiled((a, torch.randn(3, 5)), scale=2.5)
    with pytest.raises(InputError, match="dense"):
        compiled((a, b.to_sparse()), scale=2.5)


def test_inputs_that_are_not_contiguous_are_copied():
    compiled = frontend.compile(nn.Linear(4, 3), (torch.randn(5, 4),), **ONE)
    x = torch.randn(4, 5).t()
    same(compiled(x), compiled(x.contiguous()))


def test_results_are_new_each_time():
    module = nn.Linear(4, 3)
    compiled = frontend.compile(module, (torch.randn(5, 4),), **ONE)
    first = compiled(torch.ones(5, 4))
    kept = first.clone()
    compiled(torch.zeros(5, 4))
    assert torch.equal(first, kept)


@pytest.mark.parametrize("freeze", [True, False])
def test_weights_are_constants_or_read_at_every_call(freeze):
    module, x = nn.Linear(4, 3), torch.randn(5, 4)
    compiled = frontend.compile(module, (x,), freeze=freeze, **ONE)
    before = module(x).detach()
    same(compiled(x), before)
    module.weight.data = module.weight.data * 2
    with torch.no_grad():
        module.bias += 1
    if not freeze:
        same(compiled(x), module(x).detach())


def test_half_precision():
    module, x = nn.Linear(8, 3).to(torch.bfloat16), torch.randn(5, 8).to(torch.bfloat16)
    compiled = frontend.compile(module, (x,), **ONE)
    torch.testing.assert_close(compiled(x), module(x).detach(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    "function, why",
    [
        (torch.rand_like, "random"),
        (lambda x: torch.sort(x)[0], "does not lower 'sort'"),
        (lambda x: x, "nothing to compute"),
    ],
    ids=["random", "sort", "identity"],
)
def test_what_cannot_be_compiled(function, why):
    with pytest.raises(CompileError, match=why):
        frontend.compile(function, (torch.randn(3),))


def test_batch_norm_in_training_is_refused():
    with pytest.raises(CompileError, match="writes to its buffer"):
        frontend.compile(nn.BatchNorm1d(3).train(), (torch.randn(4, 3),))


def test_unknown_options_and_things_that_are_no_modules():
    with pytest.raises(InputError, match="unknown option 'speed'"):
        frontend.compile(nn.Linear(1, 1), (torch.randn(1, 1),), speed=9)
    with pytest.raises(InputError, match="a torch module or a function"):
        frontend.compile(3)


# ---- torch.compile ---------------------------------------------------------------------------------------------------


def compiled_by_torch(module, **options):
    return torch.compile(module, backend=frontend.backend, options=ONE | options)


@pytest.mark.parametrize("option", [{"speed": 9}, {"threads": 0}, {"target": "abacus"}, {"top_k": 0}, {"memo": 3}])
def test_an_option_that_cannot_be_is_an_error(option):
    """And no reason to run in torch, with or without gradients."""
    for mode in (torch.no_grad, torch.enable_grad):
        with mode(), pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="InputError"):
            compiled_by_torch(nn.Linear(1, 1), **option)(torch.randn(1, 1))


def test_shapes_are_specialised_as_they_come():
    module = layers(nn.Linear(6, 5), nn.Tanh()).eval()
    compiled = compiled_by_torch(module)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", EagerFallback)
        for rows in (3, 4, 7, 3, 1):
            x = torch.randn(rows, 6)
            same(compiled(x), module(x))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    module, x = layers(nn.Linear(6, 5), nn.ReLU()).eval(), torch.randn(3, 6)
    compiled = compiled_by_torch(module)
    with warnings.catch_warnings(), mode():
        warnings.simplefilter("error", EagerFallback)
        same(compiled(x), module(x))
        same(compiled(torch.ones(3, 6)), module(torch.ones(3, 6)))


def test_weights_that_are_written_to_are_read_again():
    module, x = nn.Linear(6, 5), torch.randn(3, 6)
    compiled = compiled_by_torch(module)
    with torch.no_grad():
        same(compiled(x), module(x))
        module.weight.mul_(2)
        same(compiled(x), module(x))
        module.weight.mul_(-1)
        same(compiled(x), module(x))
        module.load_state_dict(nn.Linear(6, 5).state_dict())
        same(compiled(x), module(x))


def test_training_runs_in_torch():
    module, x = nn.Linear(6, 5), torch.randn(3, 6)
    with pytest.warns(EagerFallback, match="gradients are wanted"):
        y = compiled_by_torch(module)(x)
    y.sum().backward()
    assert module.weight.grad is not None


def test_what_cannot_be_compiled_runs_in_torch():
    def function(x):
        return torch.sort(x)[0] + 1

    x = torch.randn(5)
    compiled = compiled_by_torch(function)
    with pytest.warns(EagerFallback, match="does not lower 'sort'") as caught:
        same(compiled(x), function(x))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerFallback)
        same(compiled(x), function(x))


def test_buffers_that_are_written_to():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x)
            return self.total * 2

    module, x = Counter(), torch.randn(3)
    compiled = compiled_by_torch(module)
    with torch.no_grad():
        compiled(x)
        same(compiled(x), 4 * x)
        same(module.total, 2 * x)


def test_inputs_that_are_written_to():
    def function(x, y):
        x.mul_(2)
        return x + y

    x, y = torch.ones(3), torch.ones(3)
    same(compiled_by_torch(function)(x, y), torch.full((3,), 3.0))
    same(x, torch.full((3,), 2.0))


def test_numbers_among_the_inputs():
    compiled = compiled_by_torch(lambda x, n: x * n)
    x = torch.randn(3)
    for n in (2, 3, 2.5):
        same(compiled(x, n), x * n)


def test_the_memo_is_not_written_while_torch_replaces_functions_of_pythons(tmp_path):
    """What writes it imports numba, which `math.pow` as torch.export has it ends, and the tables are lost."""
    seen = []
    memo = memo_module.Memo(get_target("avx2"), Store(tmp_path / "memo"), wait=False)

    class Slow(nn.Module):
        def forward(self, x):
            memo._submit(lambda: seen.append(math.pow.__module__))
            time.sleep(0.1)
            return x + 1

    frontend.compile(Slow(), (torch.ones(3),), **ONE)
    memo.flush()
    assert seen and set(seen) == {"math"}


def test_threads_may_come_first_together():
    module, x = nn.Linear(6, 5).eval(), torch.randn(3, 6)
    with torch.no_grad():
        wanted = module(x)
        call = frontend.backend(torch.fx.symbolic_trace(module), [x], options=ONE)

    def run():
        with torch.no_grad():
            return [call(x) for _ in range(20)]

    for each in itertools.chain(*at_once([run] * 4)):
        same(each[0] if isinstance(each, tuple) else each, wanted)


def test_an_open_batch_is_compiled_for_each_size():
    module = layers(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    compiled = torch.compile(module, backend="morello", options=ONE)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", EagerFallback)
        for size in (3, 5, 7):
            x = torch.randn(size, 8)
            torch._dynamo.mark_dynamic(x, 0)
            same(compiled(x), module(x))


def test_autocast():
    module = layers(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("error", EagerFallback)
        x = torch.randn(3, 8)
        got = torch.compile(module, backend="morello", options=ONE)(x)
        assert got.dtype == torch.bfloat16
        torch.testing.assert_close(got, module(x), rtol=2e-2, atol=2e-2)


def test_a_cache_that_grows_step_by_step():
    def step(cache, x, position):
        cache[:, position] = x
        return cache.sum(1)

    compiled = torch.compile(step, backend="morello", options=ONE)
    ours, theirs = torch.zeros(2, 6, 4), torch.zeros(2, 6, 4)
    with torch.no_grad():
        for position in range(3):
            x = torch.randn(2, 4)
            same(compiled(ours, x, position), step(theirs, x, position))
            same(ours, theirs)
