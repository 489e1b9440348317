"""The dialect from Python: loading, accessors, construction. The verifier's rules are in test/lit/dialect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlir import ir

from morello_mlir import diagnostics, dialect
from morello_mlir.dialect import SpecOp, build_spec_op, bundle_size, problems, spec_ops
from morello_mlir.dialect.verify import memref_problem
from morello_mlir.errors import SpecError
from morello_mlir.spec import Layout, Spec, TensorSpec

SPEC = Spec.parse(
    "MatmulAccum([1, 4, 8, 16], (f32, GL, row_major), (f32, L2, [b, n/8, k, n%8]), (f32, GL, col_major), serial, "
    "[VRF=16, L1=512])"
)
TYPES = ("memref<4x8xf32>", "memref<2x8x8xf32>", "memref<4x16xf32, strided<[1, 4]>>")


@pytest.fixture
def block() -> Iterator[ir.Block]:
    """The body of a function whose arguments have the types above, with the insertion point at its end."""
    with ir.Context() as context, ir.Location.file("here.mlir", 7, 3):
        dialect.load(context)
        arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(TYPES))
        module = ir.Module.parse(f"func.func @f({arguments}) {{ return }}")
        body = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_terminator(body):
            yield body


def test_loading_twice_does_nothing() -> None:
    with ir.Context() as context:
        assert not dialect.loaded(context)
        dialect.load(context)
        dialect.load(context)
        assert dialect.loaded(context)


def test_what_is_built_is_valid_and_reads_back(block: ir.Block) -> None:
    op = build_spec_op(SPEC, block.arguments, schedule="a\n  b")
    assert problems(op) == []
    assert op.spec == SPEC
    assert op.schedule_text == "a\n  b"
    assert (op.cost, op.source) == (None, None)
    assert op.operands == tuple(block.arguments)
    assert op.results == ()
    assert op.operation.location == ir.Location.file("here.mlir", 7, 3)
    again = ir.Module.parse(str(block.owner))
    (found,) = spec_ops(again)
    assert found.spec == SPEC


def test_parallel_far_and_unlimited(block: ir.Block) -> None:
    spec = Spec(SPEC.function, SPEC.dims, SPEC.operands, serial=False, far=True)
    op = build_spec_op(spec, block.arguments)
    assert op.spec == spec
    assert (op.serial, op.far, op.limits) == (False, True, {})
    assert problems(op) == []


def test_further_attributes_and_locations(block: ir.Block) -> None:
    attribute = ir.StringAttr.get("x")
    op = build_spec_op(
        SPEC, block.arguments, attributes={"morello.origin": attribute}, location=ir.Location.file("there", 1, 2)
    )
    assert op.operation.attributes["morello.origin"] == attribute
    assert diagnostics.place_of(op.operation.location) == diagnostics.Place("there", 1, 2)
    assert problems(op) == []


def test_schedules_are_replaced_and_removed(block: ir.Block) -> None:
    op = build_spec_op(SPEC, block.arguments)
    assert op.schedule_text is None
    op.set_schedule("one\ntwo", cost=12, source="memo")
    assert (op.schedule_text, op.cost, op.source) == ("one\ntwo", 12, "memo")
    op.set_schedule("three")
    assert (op.schedule_text, op.cost, op.source) == ("three", None, None)
    op.set_schedule(None)
    assert "schedule" not in op.operation.attributes


def test_a_schedule_may_be_one_string(block: ir.Block) -> None:
    op = build_spec_op(SPEC, block.arguments)
    op.operation.attributes["schedule"] = ir.StringAttr.get("one\ntwo")
    assert op.schedule_text == "one\ntwo"
    assert problems(op) == []


@pytest.mark.parametrize(
    ("layout", "shape", "lanes", "count"),
    [
        (Layout.row_major(3), (1, 6, 16), 8, 12),
        (Layout.row_major(3), (1, 6, 17), 8, 18),
        (Layout.row_major(3), (2, 3, 4), 8, 6),
        (Layout.col_major(3), (1, 16, 6), 8, 16),
        (Layout.packed(3, 2, 16), (1, 3, 20), 8, 12),
    ],
)
def test_a_bundle_has_whole_vectors_for_every_row(
    layout: Layout, shape: tuple[int, ...], lanes: int, count: int
) -> None:
    assert bundle_size(TensorSpec("f32", "VRF", layout), shape, lanes) == count


def test_spec_ops_are_found_in_order_even_while_they_are_erased(block: ir.Block) -> None:
    for text in "abc":
        build_spec_op(SPEC, block.arguments, schedule=text)
    seen = []
    for op in spec_ops(block.owner):
        seen.append(op.schedule_text)
        op.operation.erase()
    assert seen == ["a", "b", "c"]
    assert list(spec_ops(block.owner)) == []


def test_other_ops_are_refused(block: ir.Block) -> None:
    with pytest.raises(SpecError, match=r"expected a 'morello\.spec' op, not 'func\.func'"):
        SpecOp(block.owner)


def test_errors_go_to_the_op(block: ir.Block) -> None:
    op = build_spec_op(SPEC, block.arguments)
    op.operation.attributes["dims"] = ir.DenseI64ArrayAttr.get([1, 4])
    other = build_spec_op(SPEC, block.arguments)
    other.operation.attributes["cost"] = ir.UnitAttr.get()
    with diagnostics.capture(block.owner.context) as sink:
        assert not dialect.verify_specs(block.owner)
        assert not dialect.verify_spec_op(op)
    assert [str(d) for d in sink.diagnostics] == [
        "here.mlir:7:3: error: 'morello.spec' op attribute 'dims': MatmulAccum has 4 dims [b, m, k, n], not 2",
        "here.mlir:7:3: error: 'morello.spec' op attribute 'cost': expected an integer, not unit",
        "here.mlir:7:3: error: 'morello.spec' op attribute 'dims': MatmulAccum has 4 dims [b, m, k, n], not 2",
    ]


_ORDERS = st.permutations([0, 1, 2]).map(Layout.permutation)
#: For all examples: making one takes longer than what they check.
_CONTEXT = ir.Context()


@given(_ORDERS, st.tuples(*[st.integers(2, 5)] * 3), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_strided_memrefs_of_any_order_agree_with_their_layout(
    layout: Layout, shape: tuple[int, ...], gaps: list[int]
) -> None:
    strides = [0, 0, 0]
    stride = 1
    for (dim, _), gap in zip(reversed(layout.parts), gaps, strict=True):
        strides[dim] = stride
        stride = (stride * shape[dim]) + gap
    with _CONTEXT, ir.Location.unknown():
        kind = ir.MemRefType.get(shape, ir.F32Type.get(), layout=ir.StridedLayoutAttr.get(0, strides))
        assert memref_problem(TensorSpec("f32", "GL", layout), shape, kind) == ""
        for other in map(Layout.permutation, ([0, 1, 2], [2, 1, 0], [1, 0, 2])):
            complaint = memref_problem(TensorSpec("f32", "GL", other), shape, kind)
            assert (complaint == "") == (other == layout)
