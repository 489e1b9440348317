"""JAX: `compile(fn, *args)`: a function of pytrees of arrays, exported as StableHLO, lowered to linalg by jaxlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from morello_mlir.aligned import aligned
from morello_mlir.api import CompiledModule
from morello_mlir.errors import CompileError, InputError, first_line

from . import control_flow, importer, need, reductions, unsigned

need("jax", "jax")

import jax  # noqa: E402
from jax import export  # noqa: E402

ENTRY = "main"
#: In jaxlib's MLIR: StableHLO (and CHLO above it) to linalg. Composites are named after what CHLO has, and say in a
#: function of their own what they are.
_TO_LINALG = (
    "builtin.module(func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo),"
    "stablehlo-legalize-to-linalg,stablehlo-convert-to-signless)"
)


def compile(
    function: Callable[..., Any], *args: Any, constant_argnums: int | Sequence[int] = (), **options: Any
) -> CompiledJaxFunction:
    """A function of arrays, and of pytrees of them, compiled for arguments like these.

    args:             arrays or `jax.ShapeDtypeStruct`s; shapes, dtypes and structure count.
    constant_argnums: which arguments (of args) are constants, as weights are: calls leave them out.
    options:          those of `morello_mlir.compile`: target, threads, memo, optimize, cache, measure, top_k.

    Raises CompileError (JAX cannot export the function, or its program cannot be lowered), InputError.
    """
    if not callable(function):
        raise InputError(f"expected a function, got a {type(function).__name__}")
    numbers = {constant_argnums} if isinstance(constant_argnums, int) else set(constant_argnums)
    if any(not 0 <= n < len(args) for n in numbers):
        raise InputError(f"constant_argnums: there are {len(args)} arguments")
    return CompiledJaxFunction(function, args, numbers, options)


class CompiledJaxFunction:
    """`f(*args)` runs the compiled function. `compiled` is the `morello_mlir.CompiledModule` inside."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], numbers: set[int], options: dict[str, Any]
    ) -> None:
        leaves = jax.tree.leaves(args)
        exported = _exported(function, args)
        fixed = _positions(args, numbers)
        kept = list(exported.module_kept_var_idx)
        self._wanted = [leaf for position, leaf in enumerate(leaves) if position not in fixed]
        self._in_tree = jax.tree.structure(tuple(a for i, a in enumerate(args) if i not in numbers))
        self._out_tree = exported.out_tree
        # The numbers, among the leaves of a call, of what the program takes.
        free = [position for position in range(len(leaves)) if position not in fixed]
        self._takes = [free.index(position) for position in kept if position not in fixed]
        constants: dict[int | str, Any] = {
            at: _contents(leaves[position]) for at, position in enumerate(kept) if position in fixed
        }
        self._results = [(tuple(a.shape), np.dtype(a.dtype)) for a in exported.out_avals]
        self.compiled = _compiled(exported.mlir_module(), constants, options)

    def __call__(self, *args: Any) -> Any:
        """Run; returns jax arrays in the function's structure.

        Raises InputError: arguments of another structure, shape or dtype than those at the beginning; AssertionFailed.
        """
        leaves, tree = jax.tree.flatten(args)
        if tree != self._in_tree:
            raise InputError(f"the arguments are not structured as they were: {tree}, and were {self._in_tree}")
        for position, (leaf, wanted) in enumerate(zip(leaves, self._wanted, strict=True)):
            shape, dtype = np.shape(leaf), jax.dtypes.result_type(leaf)
            if shape != np.shape(wanted) or dtype != jax.dtypes.result_type(wanted):
                raise InputError(
                    f"argument {position} is {dtype}{list(shape)}, and was "
                    f"{jax.dtypes.result_type(wanted)}{list(np.shape(wanted))}"
                )
        taken = [_contents(leaves[i]) for i in self._takes]
        out = [_room(shape, _held(dtype)) for shape, dtype in self._results]
        self.compiled.functions[ENTRY](*taken, out=out)
        results = [each.astype(dtype, copy=False) for each, (_, dtype) in zip(out, self._results, strict=True)]
        return jax.tree.unflatten(self._out_tree, [jax.device_put(each) for each in results])


def _held(dtype: np.dtype) -> np.dtype:
    """The dtype of an array as programs take it: that of bytes for integers of a few bits."""
    if jax.dtypes.issubdtype(dtype, np.integer) and jax.dtypes.iinfo(dtype).bits < 8:
        return np.dtype(np.int8 if jax.dtypes.issubdtype(dtype, np.signedinteger) else np.uint8)
    return dtype


def _room(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Memory for a result, aligned so that JAX takes it as it is."""
    count = int(np.prod(shape, dtype=np.int64))
    return aligned(count * dtype.itemsize).view(dtype).reshape(shape)


def _positions(args: tuple[Any, ...], numbers: set[int]) -> set[int]:
    """The leaves that belong to some of the arguments."""
    found: set[int] = set()
    at = 0
    for number, argument in enumerate(args):
        count = len(jax.tree.leaves(argument))
        if number in numbers:
            found.update(range(at, at + count))
        at += count
    return found


def _contents(leaf: Any) -> np.ndarray:
    """An argument as programs take it. Raises InputError: only a shape."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise InputError("a constant (constant_argnums) or argument of a call needs its contents, not only a shape")
    dtype = jax.dtypes.result_type(leaf)
    return np.asarray(leaf, dtype).astype(_held(dtype), copy=False)


def _like(leaf: Any) -> jax.ShapeDtypeStruct:
    """What is known of an argument. Numbers of Python are weakly typed: beside an array they take its dtype."""
    aval = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _exported(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        shapes = jax.tree.map(_like, args)
        return export.export(jax.jit(function), platforms=["cpu"])(*shapes)
    except Exception as error:
        raise CompileError(f"JAX cannot export the function: {first_line(error)}") from error


def to_linalg(text: str) -> str:
    """StableHLO to linalg, both as MLIR text. Raises CompileError: an op that jaxlib does not lower."""
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir.passmanager import PassManager

    stablehlo.register_stablehlo_passes()
    with mlir.make_ir_context():
        try:
            module = ir.Module.parse(text)
            unsigned.widen(module)
            reductions.rewrite(module)
            control_flow.to_scf(module)
            PassManager.parse(_TO_LINALG).run(module.operation)
        except ir.MLIRError as error:
            said = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise CompileError(f"jaxlib cannot lower the function: {said}") from error
        if (left := next(_left(module.operation), None)) is not None:
            raise CompileError(f"jaxlib does not lower '{left.name}' to linalg")
        return str(module)


def _left(op: Any) -> Iterator[Any]:
    """The ops under `op` that are still StableHLO's or CHLO's, outer ones first."""
    for region in op.regions:
        for block in region:
            for each in block:
                if each.operation.name.startswith(("stablehlo.", "chlo.")):
                    yield each.operation
                yield from _left(each.operation)


def _compiled(text: str, constants: dict[int | str, Any], options: dict[str, Any]) -> CompiledModule:
    from morello_mlir import compile as compile_module

    module = importer.clean(to_linalg(text))
    return compile_module(module, entry=ENTRY, constants=constants, **options)
