"""torch.compile: who has memory in common with whom, before and after a graph, is as without us."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_support  # noqa: E402
from torch_support import randn  # noqa: E402

from morello_mlir.frontends import EagerFallback  # noqa: E402
from morello_mlir.frontends import torch as frontend  # noqa: E402
from morello_mlir.frontends.views import UnknownView, split  # noqa: E402

fresh = torch_support.fresh


def agree(function: Any, *makers: Any, fallback: str = "") -> None:
    """`function`, compiled and not, called with what each of `makers` makes: the same results, and the same left in the
    arguments. fallback: says why it runs in torch."""
    compiled = torch.compile(function, backend=frontend.backend, options={"threads": 1})
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always", EagerFallback)
        for seed, make in enumerate(makers):
            given, wanted = [], []
            for run, found in ((compiled, given), (function, wanted)):
                torch.manual_seed(seed)
                arguments = make()
                found.extend([run(*arguments), arguments])
            torch.testing.assert_close(given, wanted, rtol=1e-4, atol=1e-5)
    reasons = [str(w.message) for w in caught if issubclass(w.category, EagerFallback)]
    assert (fallback in reasons[0]) if fallback else not reasons, reasons


def one() -> Any:
    return (randn(4, 8),)


def break_graph() -> None:
    torch._dynamo.graph_break()


def test_a_view_of_an_input_is_written_to_after_a_graph_break():
    def function(x):
        view, y = x.view(-1), x + 1
        break_graph()
        view.add_(1)
        return x * 2, y

    agree(function, one, one)


def test_a_view_of_a_result_is_written_to_after_a_graph_break():
    def function(x):
        y = x * 2
        row = y[0]
        break_graph()
        row.add_(5)
        return y + 1

    agree(function, one, one)


def test_what_a_view_is_of_is_written_to_after_a_graph_break():
    def function(x):
        y = x.exp()
        first, second = y.t().chunk(2)
        break_graph()
        y.mul_(3)
        return first + second

    agree(function, one, one)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.view(-1), x + 1),
        lambda x: (x.detach(), x + 1),
        lambda x: (x.contiguous(), x + 1),
        lambda x: (x.add_(1), x.t()[1:3], x.sum()),
        lambda x: (lambda y: (y[1], y, y.unsqueeze(0)))(torch.tanh(x)),
        lambda x: (lambda y: (y, y.add_(1)))(x * 2),
    ],
)
def test_results_are_written_to_by_the_caller(function):
    compiled = torch.compile(function, backend=frontend.backend, options={"threads": 1})
    x = randn(4, 8)
    mine, theirs = x.clone(), x.clone()
    with torch.no_grad():
        got, wanted = compiled(mine), function(theirs)
        got[0].mul_(7)
        wanted[0].mul_(7)
    torch.testing.assert_close((got, mine), (wanted, theirs))


def test_a_graph_of_views_alone_runs_in_torch_and_says_nothing():
    agree(lambda x: (x.view(-1), x[1:]), one)


def test_open_sizes_and_views():
    def function(x):
        y = x * 2
        return y, y.reshape(y.shape[1], -1)[0], x.t()

    agree(function, *[lambda n=n: (randn(n, 2 * n),) for n in (2, 3, 5)])


def test_views_that_depend_on_other_tensors_run_in_torch():
    agree(lambda x, y: (x.expand_as(y), x + y), lambda: (randn(1, 8), randn(4, 8)), fallback="expand_as")


def test_graphs_without_views_stay_as_they_are():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compile(lambda x: (x + 1, x * 2), backend=backend)(randn(3))
    parts = split(graphs[0])
    assert parts.compute is graphs[0]
    assert parts.finish is None
    torch.compile(lambda x, y: (x.expand_as(y), x + y), backend=backend)(randn(1), randn(3))
    with pytest.raises(UnknownView, match="reads other tensors"):
        split(graphs[1])


def overlapping() -> Any:
    x = randn(4, 8)
    return x, x[1:]


def apart() -> Any:
    return randn(4, 8), randn(3, 8)


@pytest.mark.parametrize("order", [(overlapping, apart, overlapping), (apart, overlapping, apart)])
def test_an_input_that_is_written_to_lies_in_another(order):
    def function(x, view):
        x.add_(1)
        return view * 2

    agree(function, *order)


def test_inputs_lie_side_by_side():
    def function(x, y):
        x.add_(y)
        return x * 2

    agree(function, lambda: randn(2, 4, 8).unbind(), lambda: randn(4, 2, 8).unbind(1))


def test_inputs_are_negated_by_whoever_reads_them():
    def function(x):
        return x * 2

    agree(function, lambda: (torch._neg_view(randn(4, 8)),), one, lambda: (torch._neg_view(randn(4, 8)),))
    agree(function, lambda: (torch.randn(1, dtype=torch.complex64).conj().imag,))
    weight = torch._neg_view(randn(8, 3))
    agree(lambda x: x @ weight, one)


def test_functions_that_differentiate_inside():
    def inside(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad((x**3).sum(), x)[0]

    agree(inside, one, one, fallback="gradients are wanted")
    agree(lambda x: torch.func.grad(lambda t: (t**3).sum())(x), one, fallback="gradients are wanted")


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: x.reshape(-1, 8).softmax(-1), [(0, 4, 8)]),
        (lambda x: (x.sum(0), x.flatten(1).mean(1)), [(0, 4, 8)]),
        (lambda x, y: (x @ y).relu(), [(4, 0), (0, 5)]),
        (lambda x, y: torch.cat([x, y]), [(0, 4), (3, 4)]),
        (lambda x, w: torch.nn.functional.conv2d(x, w), [(0, 3, 8, 8), (4, 3, 3, 3)]),
        (lambda x: x[:, 2:2].reshape(3, 0).sum(1) + x[:, 0], [(3, 4)]),
    ],
)
def test_tensors_without_elements(function, shapes):
    inputs = [randn(*shape) for shape in shapes]
    torch.testing.assert_close(frontend.compile(function, inputs)(*inputs), function(*inputs))
