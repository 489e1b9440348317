"""torch: `torch.compile(model, backend="morello")`, and `compile(module, example_inputs)`.

A graph is exported, decomposed and folded, imported by torch-mlir, and compiled for the shapes that it meets; weights
are constants, packed once. It is for inference: a graph that wants gradients, and one that cannot be compiled, runs in
torch as it would without us, with one warning that says why.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from morello_mlir.api import CompiledModule, settings_of
from morello_mlir.errors import InputError, MorelloError, first_line
from morello_mlir.locks import IMPORTING, lock
from morello_mlir.runtime.profile import Profile

from . import EagerFallback, importer, need

need("torch", "torch")
need("torch_mlir", "torch")

import torch  # noqa: E402

from . import views  # noqa: E402
from .fx import Graphed, NothingToCompute, graph_of, shapes_of  # noqa: E402
from .torch_call import TorchCall, check_dense, overlapping, plain  # noqa: E402

#: Programs kept per graph, one for each set of shapes; more shapes than these run in torch.
SPECIALISATIONS = 64
#: The options of `morello_mlir.compile` that both ways take, and one of ours.
OPTIONS = ("target", "threads", "memo", "optimize", "cache", "measure", "top_k", "pack_constants")
_FREEZE = "freeze"


def compile(
    module: Any,
    example_inputs: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    freeze: bool = True,
    **options: Any,
) -> CompiledTorchModule:
    """A torch module (or function of tensors) compiled for inputs like these.

    example_inputs, example_kwargs: what it is called with: shapes, dtypes and numbers count, contents do not.
    freeze:  parameters and buffers are constants, as they are now. False: they are read at every call.
    options: those of `morello_mlir.compile`: target, threads, memo, optimize, cache, measure, top_k, pack_constants.

    The result is called like the module, with inputs of the same shapes; results carry no gradients.
    Raises CompileError (the module cannot be compiled), InputError.
    """
    _check_options(options)
    return CompiledTorchModule(module, tuple(example_inputs), dict(example_kwargs or {}), freeze, options)


class CompiledTorchModule:
    """`f(*inputs)` runs the compiled module. `compiled` is the `morello_mlir.CompiledModule` inside."""

    def __init__(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], freeze: bool, options: Mapping[str, Any]
    ):
        from torch.utils import _pytree

        if not isinstance(module, torch.nn.Module):
            if not callable(module):
                raise InputError(f"expected a torch module or a function, got a {type(module).__name__}")
            module = _Function(module)
        self._flatten = _pytree.tree_flatten
        self._unflatten = _pytree.tree_unflatten
        flat, self._in_spec = self._flatten((args, kwargs))
        self._shapes = shapes_of(flat, set())
        args, kwargs = _pytree.tree_map(_example, (args, kwargs))
        graph, parameters = _whole_graph(module, args, kwargs, freeze)
        self._parameters, self._inputs = parameters, graph.inputs
        self._call = _compiled(graph, options)
        self._out_spec = graph.program.call_spec.out_spec

    @property
    def compiled(self) -> CompiledModule:
        """What was lifted, how long it took, and the code."""
        return self._call.compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run. Raises InputError: inputs of another structure, shape or dtype than the examples; AssertionFailed."""
        flat = self._flat(args, kwargs)
        return self._unflatten(self._call([*self._parameters, *flat]), self._out_spec)

    def profile(self, *args: Any, seconds: float = 0.2, **kwargs: Any) -> Profile:
        """Where the time of a call goes, measured in so many seconds of calls: see `CompiledModule.profile`. Nothing is
        written to the module or to inputs. Raises InputError."""
        inputs = [*self._parameters, *self._flat(args, kwargs)]
        given = [plain(inputs[i].detach()) for i in self._inputs]
        return self.compiled.profile(*given, seconds=seconds)

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The inputs in a row, checked."""
        flat, spec = self._flatten((args, kwargs))
        if spec != self._in_spec:
            raise InputError("the inputs are not structured as the examples were")
        if shapes_of(flat, set()) != self._shapes:
            raise InputError(f"the inputs are not like the examples: {_unlike(flat, self._shapes)}")
        for position, value in enumerate(flat):
            if isinstance(value, torch.Tensor):
                check_dense(value, f"input {position}")
        return list(flat)


class _Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _whole_graph(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], freeze: bool
) -> tuple[Graphed, tuple[Any, ...]]:
    """The graph of a module, and what its calls take before the inputs: parameters that are no constants."""
    if freeze:
        return graph_of(module, args, kwargs), ()
    named = [*module.named_parameters(), *module.named_buffers()]
    names, tensors = [name for name, _ in named], tuple(tensor for _, tensor in named)

    class Open(torch.nn.Module):
        def forward(self, given: Any, args: Any, kwargs: Any) -> Any:
            return torch.func.functional_call(module, dict(zip(names, given, strict=True)), args, kwargs)

    return graph_of(Open(), (tensors, args, kwargs)), tensors


def _unlike(flat: Sequence[Any], shapes: Sequence[Any]) -> str:
    for position, (value, wanted) in enumerate(zip(flat, shapes, strict=True)):
        (found,) = shapes_of([value], set())
        if found != wanted:
            return f"input {position} is {_describe(found)}, and was {_describe(wanted)}"
    return "their number"


def _describe(shape: Any) -> str:
    if isinstance(shape, tuple):
        return f"{shape[1]} {list(shape[0])}"
    return repr(shape)


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises InputError now: an error of a compilation would only be a reason to run in torch."""
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise InputError(f"unknown option '{unknown[0]}' (there are: {', '.join((*OPTIONS, _FREEZE))})")
    with IMPORTING:
        settings_of(**{name: value for name, value in options.items() if name != "cache"})


def _compiled(graph: Graphed, options: Mapping[str, Any]) -> TorchCall:
    from morello_mlir import compile as compile_module

    compiled = compile_module(importer.clean(graph.text), constants=graph.constants, **options)
    return TorchCall(graph, compiled)


# ---- torch.compile ---------------------------------------------------------------------------------------------------


def backend(
    graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """What `torch.compile(model, backend="morello", options={...})` calls with each graph that it finds.

    options: those of `morello_mlir.compile` (threads, target, memo, ...), and `freeze` (default True): parameters and
             buffers are constants until somebody writes to them.
    """
    given = dict(options or {})
    freeze = given.pop(_FREEZE, True)
    _check_options(given)
    eager: Callable[..., Any] = graph.forward
    if _wants_gradients(graph, example_inputs):
        _warn("gradients are wanted: call the model under torch.no_grad() or torch.inference_mode()")
        return eager
    try:
        return _Graph(graph, given, freeze)
    except views.UnknownView as error:
        _warn(str(error))
        return eager


def _wants_gradients(graph: Any, example_inputs: Sequence[Any]) -> bool:
    """Whether anything that a graph computes is differentiated, outside of it or inside."""
    if any(node.target == "requires_grad_" for node in graph.graph.nodes):
        return True
    if torch.is_grad_enabled():
        return any(isinstance(t, torch.Tensor) and t.requires_grad for t in example_inputs)
    return any(node.args[0] for node in _modes(graph))


def _warn(why: str) -> None:
    warnings.warn(f"a graph runs in torch, not compiled: {why}", EagerFallback, stacklevel=3)


class _Graph:
    """A graph of torch.compile's, compiled for each set of shapes when it first meets it."""

    def __init__(self, graph: Any, options: Mapping[str, Any], freeze: bool):
        self._eager = graph
        parts = views.split(graph)
        self._graph, self._finish = _without_modes(parts.compute), parts.finish
        self._options = options
        self._lock = lock()
        placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self._static = [i for i, n in enumerate(placeholders) if _is_static(n)] if freeze else []
        self._free = [i for i in range(len(placeholders)) if i not in set(self._static)]
        # Shapes are torch's own to check, unless it left some open.
        self._open = any(_is_open(n) for n in placeholders)
        self._calls: dict[Any, TorchCall | None] = {}
        self._versions: list[Any] | None = None
        self._only: TorchCall | None = None
        self._pick = operator.itemgetter(*self._static) if len(self._static) > 1 else None
        self._warned = False

    def __call__(self, *args: Any) -> Any:
        call = self._only
        if call is None or self._open or (self._static and self._written(args)):
            call = self._find(args)
        if call is None or call.writes_into_others(args):
            return self._eager(*args)
        results = call(args)
        return results if self._finish is None else self._finish(*args, *results)

    def _fixed(self, args: tuple[Any, ...]) -> Sequence[Any]:
        return self._pick(args) if self._pick is not None else [args[i] for i in self._static]

    def _written(self, args: tuple[Any, ...]) -> bool:
        """Whether parameters are other tensors than those that the code was made with, or were written to."""
        return list(map(_version, self._fixed(args))) != self._versions

    def _find(self, args: tuple[Any, ...]) -> TorchCall | None:
        """The program for arguments like these, made if need be; None: they are for torch."""
        with self._lock:
            if self._static:
                versions = list(map(_version, self._fixed(args)))
                if self._versions is None:
                    self._versions = versions
                elif versions != self._versions:
                    # Who writes to parameters once does it again: from now on they are read at every call.
                    self._static, self._pick, self._calls, self._only = [], None, {}, None
            key = shapes_of(args, set(self._static))
            if key not in self._calls:
                full = len(self._calls) >= SPECIALISATIONS
                self._calls[key] = None if full else self._make(args)
            call = self._calls[key]
            if not self._open:
                self._only = call
            return call

    def _make(self, args: tuple[Any, ...]) -> TorchCall | None:
        from torch._guards import detect_fake_mode

        try:
            for position, value in enumerate(args):
                if isinstance(value, torch.Tensor):
                    check_dense(value, f"input {position}")
            if detect_fake_mode(args) is not None:
                return None
            fixed = {i: args[i] for i in self._static}
            # What is written to would be the memory of others for torch.export, and is not for the next call.
            apart = overlapping(args, range(len(args)))
            examples = tuple(_apart(value) if apart else _example(value) for value in args)
            with torch.inference_mode(False), torch.no_grad():
                return _compiled(graph_of(self._graph, examples, None, fixed), self._options)
        except NothingToCompute:
            return None
        except MorelloError as error:
            if not self._warned:
                self._warned = True
                _warn(first_line(error))
            return None


def _example(value: Any) -> Any:
    """What a graph is exported with: a tensor that is neither a parameter nor an inference tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty(value.shape, dtype=value.dtype) if value.is_inference() else value.detach()


def _apart(value: Any) -> Any:
    """The same with memory of its own."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _version(tensor: Any) -> tuple[int, int]:
    """Changes when a tensor is written to, or given other memory. (What is written to `tensor.data` nobody sees.)"""
    return (0 if tensor.is_inference() else tensor._version), tensor.data_ptr()


def _is_static(node: Any) -> bool:
    """Whether a placeholder is a module's parameter or buffer."""
    value = node.meta.get("example_value")
    if isinstance(value, torch.nn.Parameter):
        return True
    return bool(node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type"))


def _is_open(node: Any) -> bool:
    """Whether a placeholder is a number, or a tensor of a size that torch left open."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return True
    return any(not isinstance(size, int) for size in value.shape)


def _modes(graph: Any) -> list[Any]:
    """The nodes that switch gradients on and off."""
    switches = (torch._C._set_grad_enabled, torch.set_grad_enabled)
    return [n for n in graph.graph.nodes if n.op == "call_function" and n.target in switches]


def _without_modes(graph: Any) -> Any:
    """A graph that does not switch gradients on and off: there are none."""
    import copy

    if not _modes(graph):
        return graph
    made = copy.copy(graph)
    made.graph = copy.deepcopy(graph.graph)
    for node in _modes(made):
        made.graph.erase_node(node)
    made.recompile()
    return made
