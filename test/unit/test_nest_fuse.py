"""Which ops become one nest, what it computes and where: by the Specs that come out of lifting."""

import pytest
from nest_program_support import LIFT, Program, Tensor, layernorm, lift, softmax

from morello_mlir.lifting.nests.index import Index, NotLinear, Split, covers, delinearize, linearize
from morello_mlir.nests import NestSpec


def nests(p: Program, *results: Tensor) -> list[str]:
    found, _, module = lift(p.text(*results))
    assert "linalg." not in module and "morello.member" not in module
    for text in found:
        assert str(NestSpec.parse(text)) == text
    return found


def body(text: str) -> str:
    return str(NestSpec.parse(text).body)


# ---------------------------------------------------------------- chains


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_is_one_nest(dim):
    p = Program()
    x = p.argument(4, 6, 8)
    (found,) = nests(p, softmax(p, x, dim))
    spec = NestSpec.parse(found)
    assert spec.function == "Softmax"
    assert sorted(spec.dims[d] for d in spec.scan_dims) == [x.shape[dim]]
    assert len(spec.operands) == 2


def test_softmax_of_scaled_and_masked_scores_is_one_nest():
    p = Program()
    x, mask = p.argument(2, 3, 8, 8), p.argument(8, 8, dtype="i1")
    scale, low = p.constant("8.0", "f32"), p.constant("0xFF800000", "f32")
    scaled = p.map(f"%y = arith.divf %a, {scale} : f32", x, shape=x.shape)
    text = f"%y = arith.select %b, %a, {low} : f32"
    masked = p.map(text, scaled, mask, shape=x.shape, maps=["", "(d2, d3)"])
    (found,) = nests(p, softmax(p, masked, 3))
    assert found.startswith("Softmax([6, 8, 8 scan], ")
    assert "(i8, GL, [0, 8, 1])" in found  # a byte for each truth value, the same for all heads


def test_layernorm_is_one_nest():
    p = Program()
    x, w, b = p.argument(7, 12), p.argument(12), p.argument(12)
    (found,) = nests(p, layernorm(p, x, w, b))
    spec = NestSpec.parse(found)
    assert spec.function == "Compose"
    assert spec.dims == (7, 12) and spec.scan == (False, True)
    assert len(spec.operands) == 4 and len(spec.body.reductions) == 2


def test_statistics_of_a_batch_are_scans_over_all_but_the_channel():
    p = Program()
    x = p.argument(2, 3, 4, 5)
    total = p.reduce("%y = arith.addf %a, %o : f32", x, [0, 2, 3], "0.0", keep=True)
    y = p.map("%y = arith.subf %a, %b : f32", x, total, shape=x.shape, maps=["", "(0, d1, 0, 0)"])
    (found,) = nests(p, y)
    assert body(found) == "s = sum(x0); y = sub(x0, s)"
    assert found.startswith("Compose([3, 2 scan, 20 scan], ")


def test_a_named_softmax_is_taken_apart():
    p = Program()
    x = p.argument(4, 8)
    result = p.op("linalg.softmax dimension(1)", x, shape=(4, 8))
    found, remarks, _ = lift(p.text(result))
    assert body(found[0]) == "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
    assert remarks == [f"linalg.softmax lifted: {found[0]}"]


def test_elementwise_ops_with_broadcasts_are_one_nest():
    p = Program()
    x, bias, skip = p.argument(5, 6), p.argument(6), p.argument(5, 6)
    zero = p.constant("0.0", "f32")
    biased = p.map("%y = arith.addf %a, %b : f32", x, bias, shape=x.shape, maps=["", "(d1)"])
    clipped = p.map(
        f"%c = arith.cmpf ugt, %a, {zero} : f32\n%y = arith.select %c, %a, {zero} : f32", biased, shape=x.shape
    )
    (found,) = nests(p, p.map("%y = arith.addf %a, %b : f32", clipped, skip, shape=x.shape))
    assert body(found) == "y = add(max(add(x0, x1), 0.0:f32), x2)"


def test_what_others_use_becomes_an_output():
    p = Program()
    x = p.argument(5, 6)
    e = p.map("%y = math.exp %a : f32", x, shape=x.shape)
    s = p.reduce("%y = arith.addf %a, %o : f32", e, [1], "0.0")
    (found,) = nests(p, s, e)
    spec = NestSpec.parse(found)
    assert len(spec.outputs) == 2 and len(spec.inputs) == 1


def test_reductions_over_different_dims_are_two_nests():
    p = Program()
    x = p.argument(5, 6)
    rows = p.reduce("%y = arith.addf %a, %o : f32", x, [1], "0.0")
    columns = p.reduce("%y = arith.addf %a, %o : f32", x, [0], "0.0")
    assert len(nests(p, rows, columns)) == 2


@pytest.mark.parametrize(
    ("scalar", "bodies"),
    [
        ("%y = arith.negf %a : f32", ["s = sum(x0); y = neg(s)"]),
        ("%one = arith.constant 1.0 : f32\n%y = arith.mulf %a, %one : f32", ["y = x0", "y = sum(x0)"]),
    ],
)
def test_what_is_repeated_along_a_scan_is_made_of_reductions(scalar, bodies):
    p = Program()
    x = p.argument(17, 5)
    total = p.reduce("%y = arith.addf %a, %o : f32", x, [0], "0.0")
    assert [body(n) for n in nests(p, p.map(scalar, total, shape=(5, 17), maps=["(d0)"]))] == bodies


def test_what_reads_a_result_leaves_the_op_of_another_alone():
    """A pair of reductions of which one has no form that nests know, and the other has no use but an unread one."""
    p = Program()
    x = p.argument(17, 5)
    low, zero = p.fill((5,), "f32", "0xFF800000"), p.fill((5,), "i64", "0")
    p.line(
        f"""%m:2 = linalg.generic {{
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>],
          iterator_types = ["reduction", "parallel"]}}
          ins({x.name} : {x.type}) outs({low.name}, {zero.name} : {low.type}, {zero.type}) {{
        ^bb0(%a: f32, %o: f32, %p: i64):
          %i = linalg.index 0 : index
          %j = arith.index_cast %i : index to i64
          %c = arith.cmpf ogt, %a, %o : f32
          %y = arith.select %c, %a, %o : f32
          %q = arith.select %c, %j, %p : i64
          linalg.yield %y, %q : f32, i64
        }} -> ({low.type}, {zero.type})"""
    )
    largest, position = Tensor("%m#0", (5,), "f32"), Tensor("%m#1", (5,), "i64")
    y = p.map("%y = arith.negf %b : f32", position, largest, shape=(5, 17), maps=["(d0)", "(d0)"])
    found, _, module = lift(p.text(y))
    assert "y = neg(x0)" in map(body, found) and module.count("linalg.generic") == 1


def test_a_reduction_of_a_reduction_is_two_nests():
    p = Program()
    x = p.argument(5, 6)
    rows = p.reduce("%y = arith.addf %a, %o : f32", x, [1], "0.0")
    assert len(nests(p, p.reduce("%y = arith.maximumf %a, %o : f32", rows, [0], "0xFF800000"))) == 2


def test_what_is_costly_is_not_computed_for_every_row():
    p = Program()
    x, w = p.argument(50, 6), p.argument(6)
    scale = p.map("%y = math.exp %a : f32", w, shape=(6,))
    y = p.map("%y = arith.mulf %a, %b : f32", x, scale, shape=x.shape, maps=["", "(d1)"])
    assert [body(n) for n in nests(p, y)] == ["y = mul(x0, x1)", "y = exp(x0)"]


def test_what_is_cheap_is_computed_for_every_row():
    p = Program()
    x, w = p.argument(50, 6), p.argument(6)
    scale = p.map("%y = arith.negf %a : f32", w, shape=(6,))
    y = p.map("%y = arith.mulf %a, %b : f32", x, scale, shape=x.shape, maps=["", "(d1)"])
    assert [body(n) for n in nests(p, y)] == ["y = mul(neg(x1), x0)"]


def test_nests_never_wait_for_each_other():
    # The exponential is used by the product too, which the maximum at the end needs: one nest cannot have both ends.
    p = Program()
    x, w = p.argument(8, 8), p.argument(8, 8)
    e = p.map("%y = math.exp %a : f32", x, shape=x.shape)
    product = p.op("linalg.matmul", e, w, shape=(8, 8))
    start = p.fill((8,), "f32", "0xFF800000")
    text = "%q = arith.subf %a, %b : f32\n%y = arith.maximumf %q, %o : f32"
    found, _, module = lift(p.text(p.combine(text, [e, product], start, ["parallel", "reduction"], out="(d0)")))
    assert [body(n) for n in found] == ["y = max(sub(x0, x1))", "y = exp(x0)"]
    assert "linalg." not in module


def test_users_in_between_move_behind_the_nest():
    p = Program()
    x = p.argument(5, 6)
    e = p.map("%y = math.exp %a : f32", x, shape=x.shape)
    p.line(f"%slice = tensor.extract_slice {e.name}[0, 0] [2, 6] [1, 1] : {e.type} to tensor<2x6xf32>")
    s = p.reduce("%y = arith.addf %a, %o : f32", e, [1], "0.0")
    copy, found = sorted(nests(p, s, Tensor("%slice", (2, 6), "f32")), key=len)
    assert body(copy) == "y = x0"
    assert "y0 = exp(x0); y1 = sum(y0)" in found or "y1 = exp(x0); y0 = sum(y1)" in found


# ---------------------------------------------------------------- views


def test_reshapes_are_read_through():
    p = Program()
    x = p.argument(4, 12)
    p.line(
        "%e = tensor.expand_shape %v1 [[0], [1, 2]] output_shape [4, 3, 4] : tensor<4x12xf32> into tensor<4x3x4xf32>"
    )
    groups = Tensor("%e", (4, 3, 4), "f32")
    total = p.reduce("%y = arith.addf %a, %o : f32", groups, [2], "0.0", keep=True)
    y = p.map("%y = arith.subf %a, %b : f32", groups, total, shape=groups.shape, maps=["", "(d0, d1, 0)"])
    p.line(f"%c = tensor.collapse_shape {y.name} [[0], [1, 2]] : tensor<4x3x4xf32> into tensor<4x12xf32>")
    back = p.map("%y = arith.addf %a, %b : f32", Tensor("%c", (4, 12), "f32"), x, shape=(4, 12))
    (found,) = nests(p, back)
    assert found.startswith("Compose([12, 4 scan], (f32, GL, [4, 1]), (f32, GL, [4, 1]), ")


def test_reshapes_to_rank_0_are_read_through():
    p = Program()
    x = p.argument(4, 12)
    total = p.reduce("%y = arith.addf %a, %o : f32", x, [0, 1], "0.0", keep=True)
    number = p.reshaped(p.map("%y = math.sqrt %a : f32", total, shape=(1, 1)), [], ())
    (found,) = nests(p, p.map("%y = arith.divf %a, %b : f32", x, number, shape=(4, 12), maps=["", "()"]))
    assert "sqrt" in body(found)


def test_reshapes_that_cut_through_dims_end_a_nest():
    p = Program()
    x = p.argument(3, 4)
    e = p.map("%y = math.exp %a : f32", x, shape=(3, 4))
    p.line(f"%c = tensor.collapse_shape {e.name} [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>")
    p.line("%d = tensor.expand_shape %c [[0, 1]] output_shape [2, 6] : tensor<12xf32> into tensor<2x6xf32>")
    y = p.reduce("%y = arith.addf %a, %o : f32", Tensor("%d", (2, 6), "f32"), [1], "0.0")
    assert [body(n) for n in nests(p, y)] == ["y = sum(x0)", "y = exp(x0)"]


def test_reshapes_that_nothing_uses_go():
    p = Program()
    x = p.argument(4, 3)
    e = p.map("%y = math.exp %a : f32", x, shape=(4, 3))
    p.line(f"%c = tensor.collapse_shape {e.name} [[0, 1]] : {e.type} into tensor<12xf32>")
    p.line("%d = tensor.expand_shape %c [[0, 1]] output_shape [6, 2] : tensor<12xf32> into tensor<6x2xf32>")
    assert len(nests(p, p.reduce("%y = arith.addf %a, %o : f32", e, [1], "0.0"), e)) == 1


def test_strided_sources_and_destinations_are_used_in_place():
    p = Program()
    p.argument(10, 12)
    p.argument(20, 12)
    p.line("%s = tensor.extract_slice %v1[1, 2] [4, 5] [2, 2] : tensor<10x12xf32> to tensor<4x5xf32>")
    e = p.map("%y = math.exp %a : f32", Tensor("%s", (4, 5), "f32"), shape=(4, 5))
    p.line(f"%r = tensor.insert_slice {e.name} into %v2[3, 1] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<20x12xf32>")
    in_place = LIFT.replace("morello-return-to-argument,", "")
    found, _, _ = lift(p.text(Tensor("%r", (20, 12), "f32")), in_place)
    assert found[-1].startswith("Map([4, 5], (f32, GL, [24, 2]), (f32, GL, [12, 1]), ")


def test_windows_are_scan_dims():
    p = Program()
    x, w = p.argument(1, 3, 9, 9), p.argument(2, 2)
    start, out = p.fill((1, 3, 4, 4), "f32", "0xFF800000"), Tensor("%p", (1, 3, 4, 4), "f32")
    p.line(
        f"%p = linalg.pooling_nchw_max {{strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}} "
        f"ins({x.name}, {w.name} : {x.type}, {w.type}) outs({start.name} : {out.type}) -> {out.type}"
    )
    (found,) = nests(p, out)
    assert found == (
        "Reduce([3, 4, 4, 2 scan, 2 scan], (f32, GL, [81, 18, 2, 9, 1]), (f32, GL, [16, 4, 1, 0, 0]), "
        '"y = max(x0)", serial)'
    )


# ---------------------------------------------------------------- aliases, threads, schedules


def test_an_accumulation_starts_from_what_is_there():
    text = """func.func @f(%x: memref<4x5xf32>, %o: memref<4xf32>) {
      linalg.reduce { arith.addf } ins(%x : memref<4x5xf32>) outs(%o : memref<4xf32>) dimensions = [1]
      return
    }"""
    found, _, _ = lift(text)
    assert found == [
        "Reduce([4, 5 scan], (f32, GL, [5, 1]), (f32, GL, [1, 0]), (f32, GL, [1, 0], is x1), "
        '"s = sum(x0); y = add(s, x1)", serial)'
    ]


def test_a_result_takes_the_place_of_what_it_is_computed_from():
    p = Program()
    x, w = p.argument(8, 8), p.argument(8, 8)
    product = p.op("linalg.matmul", x, w, shape=(8, 8))
    text = p.text(product).replace("return", "%unused = arith.constant 0 : index\nreturn")
    found, _, _ = lift(text)
    assert found == []  # a contraction alone is none of ours


def test_threads():
    p = Program()
    x = p.argument(64, 8)
    found, _, _ = lift(p.text(softmax(p, x, 1)), LIFT.replace("nests=true", "nests=true threads=2"))
    assert found[0].endswith(", parallel 2)")


def test_a_schedule_by_hand_goes_through():
    p = Program()
    x = p.argument(64, 8)
    text = p.text(p.map("%y = math.exp %a : f32", x, shape=x.shape))
    text = text.replace("iterator_types", 'morello.schedule = "?", iterator_types')
    _, _, module = lift(text)
    assert 'schedule = ["?"]' in module


def test_equal_nests_share_a_function():
    p = Program()
    x, z = p.argument(4, 8), p.argument(4, 8)
    found, _, module = lift(p.text(softmax(p, x, 1), softmax(p, z, 1)))
    assert len(found) == 1 and module.count("call @morello_softmax_4x8_f32") == 2


# ---------------------------------------------------------------- indices


def test_indices_print_and_parse():
    for index in (Index(), Index(3), Index.dim(2), Index.of(5, {0: 2, 7: 1})):
        assert Index.parse(str(index)) == index
    assert str(Index.of(1, {0: 4, 2: 1})) == "d0 * 4 + d2 + 1"


def test_linear_indices_come_apart_where_dims_end():
    sizes = (3, 4, 5)
    dims = [Index.dim(d) for d in range(3)]
    whole = linearize(dims, sizes)
    assert delinearize(whole, sizes, sizes) == tuple(dims)
    assert delinearize(whole, (12, 5), sizes) == (Index.of(0, {0: 4, 1: 1}), dims[2])
    with pytest.raises(Split) as split:
        delinearize(Index.dim(0), (2, 6), (12,))
    assert (split.value.dim, split.value.inner) == (0, 6)
    with pytest.raises(NotLinear):
        delinearize(whole, (10, 6), sizes)
    with pytest.raises(NotLinear):
        delinearize(Index.of(3, {0: 1}), (3, 4), (4,))


def test_covering():
    sizes = (3, 4)
    d0, d1 = Index.dim(0), Index.dim(1)
    assert covers([d0, d1], (3, 4), sizes) and covers([d1, d0, Index()], (4, 3, 1), sizes)
    assert covers([linearize([d0, d1], sizes)], (12,), sizes)
    assert not covers([d0, d0], (3, 3), sizes)
    assert not covers([d0], (4,), sizes)
    assert not covers([d0 + d1], (6,), sizes)
    assert not covers([d0 + Index(1)], (3,), sizes)
