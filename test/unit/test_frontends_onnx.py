"""ONNX: model files become programs that give the reference's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from morello_mlir.errors import CompileError, InputError, MorelloError

onnx = pytest.importorskip("onnx")
pytest.importorskip("torch_mlir")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from morello_mlir.frontends import onnx as frontend  # noqa: E402


def weight(name, *shape):
    values = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values * 0.1, name)


def image_model():
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["y"], transB=1),
        helper.make_node("Softmax", ["y"], ["s"], axis=-1),
    ]
    shape = {"x": ["n", 3, 16, 16], "s": ["n", 50], "y": ["n", 50]}
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, each) for name, each in shape.items()}
    weights = [weight("w", 32, 3, 3, 3), weight("b", 32), weight("fw", 50, 32), weight("fb", 50)]
    graph = helper.make_graph(nodes, "images", [infos["x"]], [infos["s"], infos["y"]], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_file_with_an_open_size(tmp_path):
    model, path = image_model(), tmp_path / "images.onnx"
    onnx.save(model, path)
    compiled = frontend.compile(path)
    assert compiled.inputs == ("x",) and compiled.outputs == ("s", "y")
    for n in (1, 3):
        x = random(n, 3, 16, 16)
        wanted = ReferenceEvaluator(model).run(None, {"x": x})
        for got, each in zip(compiled(x), wanted, strict=True):
            np.testing.assert_allclose(got, each, rtol=1e-4, atol=1e-6)


def test_a_shape_that_is_given_and_inputs_by_name():
    model = image_model()
    compiled = frontend.compile(model.SerializeToString(), shapes={"x": (2, 3, 16, 16)})
    x = random(2, 3, 16, 16)
    np.testing.assert_allclose(compiled(x=x)[0], ReferenceEvaluator(model).run(None, {"x": x})[0], rtol=1e-4)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    for wrong in ({}, {"x": x, "y": x}):
        with pytest.raises(InputError, match="the model takes x"):
            compiled(**wrong)


def test_what_is_no_model(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        frontend.compile(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="not an ONNX model"):
        frontend.compile(b"nonsense")
    with pytest.raises(InputError, match="no input 'z'"):
        frontend.compile(image_model(), shapes={"z": (1,)})
    with pytest.raises(InputError, match="4 dimensions, not 1"):
        frontend.compile(image_model(), shapes={"x": (1,)})


def test_an_op_that_nobody_lowers(tmp_path):
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("Unheard", ["x"], ["y"], domain="mine")], "odd", [info], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)])
    with pytest.raises(CompileError, match="torch-mlir cannot"):
        frontend.compile(model)
    file = tmp_path / "odd.onnx"
    file.write_bytes(model.SerializeToString())
    for load in (frontend.compile, frontend.import_model):
        with pytest.raises(CompileError, match=r"odd\.onnx"):
            load(file)
    file.write_bytes(b"")
    with pytest.raises(MorelloError, match=r"odd\.onnx"):
        frontend.compile(file)


def test_products_of_bytes_with_zero_points():
    """One product of bytes as they are, and results of the type that the model says."""

    def constant(name, value, dtype):
        return numpy_helper.from_array(np.array(value, dtype), name)

    points = [constant("za", 11, np.uint8), constant("zb", -3, np.int8), constant("zy", 128, np.uint8)]
    scales = [constant("sa", 0.01, np.float32), constant("sb", 0.02, np.float32), constant("sy", 0.5, np.float32)]
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"]),
        helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["q"]),
    ]
    inputs = [
        helper.make_tensor_value_info("a", TensorProto.UINT8, [7, 37]),
        helper.make_tensor_value_info("b", TensorProto.INT8, [37, 19]),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.INT32, [7, 19]),
        helper.make_tensor_value_info("q", TensorProto.UINT8, [7, 19]),
    ]
    graph = helper.make_graph(nodes, "bytes", inputs, outputs, [*points, *scales])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    rng = np.random.default_rng(5)
    feeds = {
        "a": rng.integers(0, 256, (7, 37)).astype(np.uint8),
        "b": rng.integers(-128, 128, (37, 19)).astype(np.int8),
    }
    compiled = frontend.compile(model)
    y, q = compiled(**feeds)
    want_y, want_q = ReferenceEvaluator(model).run(None, feeds)
    assert (y.dtype, q.dtype) == (np.int32, np.uint8)
    np.testing.assert_array_equal(y, want_y)
    # A result that lies in the middle between two may be rounded to either.
    assert np.abs(q.astype(int) - want_q.astype(int)).max() <= 1
    assert sum("(u8, GL" in str(s["spec"]) and "Matmul" in str(s["spec"]) for s in compiled.compiled.specs) >= 1


def integer_convolution(attributes, width=9):
    """A model of one `ConvInteger` of a 4x5x9 image, its zero point 110, with eight filters of 2x3."""
    filters = np.random.default_rng(1).integers(-100, 100, (8, 4, 2, 3)).astype(np.int8)
    weights = [numpy_helper.from_array(filters, "w"), numpy_helper.from_array(np.uint8(110), "z")]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 4, 5, width])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, ["a", "b", "c", "d"])
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], **attributes)
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], weights))
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 17))
    return model, filters


@pytest.mark.parametrize(
    ("attributes", "pads", "strides", "dilations"),
    [
        ({"pads": [1, 2, 2, 0]}, [1, 2, 2, 0], [1, 1], [1, 1]),
        ({"pads": [0, 1, 0, 1], "dilations": [1, 2]}, [0, 1, 0, 1], [1, 1], [1, 2]),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [0, 1, 1, 1], [2, 2], [1, 1]),
        ({"auto_pad": "SAME_LOWER", "kernel_shape": [2, 3]}, [1, 1, 0, 1], [1, 1], [1, 1]),
        ({"auto_pad": "VALID"}, [0, 0, 0, 0], [1, 1], [1, 1]),
    ],
)
def test_borders_of_quantised_convolutions(attributes, pads, strides, dilations):
    """Where two sides differ, torch-mlir's own lowering ends the process."""
    model, filters = integer_convolution(attributes)
    x = np.random.default_rng(0).integers(0, 255, (1, 4, 5, 9)).astype(np.uint8)
    image = np.pad(x[0].astype(np.int32) - 110, [(0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    reach = [dilations[0] + 1, 2 * dilations[1] + 1]
    windows = np.lib.stride_tricks.sliding_window_view(image, reach, (1, 2))
    windows = windows[:, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    wanted = np.einsum("cyxhw,fchw->fyx", windows, filters.astype(np.int32))[None]
    np.testing.assert_array_equal(frontend.compile(model)(x), wanted)


def test_borders_that_follow_from_an_open_size():
    model, _ = integer_convolution({"auto_pad": "SAME_UPPER"}, width="n")
    with pytest.raises(CompileError, match="'ConvInteger': its borders follow from a size that is not known"):
        frontend.compile(model)


@pytest.mark.parametrize(("axis", "shape"), [(0, (5,)), (1, (2, 3))])
def test_gather(axis, shape):
    node = helper.make_node("Gather", ["w", "i"], ["y"], axis=axis)
    size = [8, 9]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*size[:axis], *shape, *size[axis + 1 :]])
    infos = [helper.make_tensor_value_info("w", TensorProto.FLOAT, size)]
    infos += [helper.make_tensor_value_info("i", TensorProto.INT64, shape)]
    model = helper.make_model(
        helper.make_graph([node], "rows", infos, [out]), opset_imports=[helper.make_opsetid("", 17)]
    )
    compiled = frontend.compile(model)
    w, i = random(*size), np.random.default_rng(1).integers(-8, 8, shape)
    (wanted,) = ReferenceEvaluator(model).run(None, {"w": w, "i": i})
    np.testing.assert_array_equal(compiled(w, i), wanted)
    assert compiled.compiled.left == 0
