"""Copies behind reshapes compute what reshapes behind copies do."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import morello_mlir
from morello_mlir.lifting.inputs import copy_of
from morello_mlir.lifting.reshaped import reshape_first
from morello_mlir.passes.symbols import all_ops
from morello_mlir.runtime.context import LOCK, parse_text


def text(shape: list[int], order: list[int], groups: list[list[int]], casts: bool, expands: bool) -> str:
    """A transpose, widened perhaps, and a reshape of it: dims of `groups` become one; expands: and again what
    they were."""
    copied = [shape[d] for d in order]
    flat = [math.prod(copied[d] for d in g) for g in groups]
    kind, wide = ("bf16", "f32") if casts else ("f32", "f32")
    t = lambda sizes, element: f"tensor<{'x'.join(map(str, sizes))}x{element}>"  # noqa: E731
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    source = ", ".join(f"d{order.index(d)}" for d in range(len(shape)))
    first, last = (flat, copied) if expands else (copied, flat)
    if expands:
        # What is copied has one dim for each group; the result has them apart again.
        order = list(range(len(groups)))[::-1]
        shape = [flat[d] for d in order]
        dims = ", ".join(f"d{i}" for i in range(len(flat)))
        source = ", ".join(f"d{order.index(d)}" for d in range(len(flat)))
    step = "%w = arith.extf %a : bf16 to f32\nlinalg.yield %w : f32" if casts else "linalg.yield %a : f32"
    kinds = ", ".join(['"parallel"'] * len(first))
    name, more = ("expand_shape", f" output_shape {last}") if expands else ("collapse_shape", "")
    return f"""func.func @f(%x: {t(shape, kind)}) -> {t(last, wide)} {{
      %e = tensor.empty() : {t(first, wide)}
      %c = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({source})>, affine_map<({dims}) -> ({dims})>],
          iterator_types = [{kinds}]}} ins(%x : {t(shape, kind)}) outs(%e : {t(first, wide)}) {{
      ^bb0(%a: {kind}, %b: {wide}):
        {step}
      }} -> {t(first, wide)}
      %r = tensor.{name} %c {groups}{more} : {t(first, wide)} into {t(last, wide)}
      return %r : {t(last, wide)}
    }}"""


@st.composite
def programs(draw):
    rank = draw(st.integers(2, 4))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    order = draw(st.permutations(range(rank)))
    cuts = sorted(draw(st.sets(st.integers(1, rank - 1), min_size=1, max_size=rank - 1)))
    groups = [list(range(a, b)) for a, b in zip([0, *cuts], [*cuts, rank], strict=True)]
    return shape, list(order), groups, draw(st.booleans()), draw(st.booleans())


@given(programs())
@settings(max_examples=60, deadline=None)
def test_the_same_elements(program):
    source = text(*program)
    module = parse_text(source)
    with LOCK, module.context:
        reshape_first(module.operation)
        assert module.operation.verify()
        after = str(module)
    casts = program[3]
    (shape,) = [f.signature.inputs[0].shape for f in morello_mlir.compile(source, optimize=False).functions.values()]
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    if casts:
        x = (x.view(np.uint32) >> 16).astype(np.uint16)
    wanted = morello_mlir.compile(source, optimize=False).f(x)
    np.testing.assert_array_equal(morello_mlir.compile(after, optimize=False).f(x), wanted)


def test_the_copy_comes_last():
    module = parse_text(text([1, 2, 5, 3], [0, 1, 3, 2], [[0, 1], [2], [3]], True, False))
    with LOCK, module.context:
        reshape_first(module.operation)
        (value,) = next(op for op in all_ops(module) if op.name == "func.return").operands
        assert copy_of(value) is not None
