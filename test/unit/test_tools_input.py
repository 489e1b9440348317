"""What the command lines take: MLIR text, bytecode and ONNX models."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import morello_mlir
from morello_mlir.errors import InputError
from morello_mlir.runtime.context import is_onnx
from morello_mlir.tools import main, opt, run
from morello_mlir.tools._cli import run_tool

MATMUL = """
func.func @f(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x32xf32>) outs(%c : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
"""


@pytest.fixture
def bytecode(tmp_path: Path) -> Path:
    from morello_mlir.runtime.context import parse_text

    path = tmp_path / "module.mlirbc"
    with path.open("wb") as file:
        parse_text(MATMUL).operation.write_bytecode(file)
    assert path.read_bytes()[:4] == b"ML\xefR"
    return path


def test_bytecode(bytecode: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", str(bytecode), "--target", "avx2", "--threads", "1"]) == 0
    assert capfd.readouterr().out.startswith("MatmulAccum([1, 16, 24, 32]")
    assert run.main([str(bytecode), "--no-morello", "--check", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["check"]["ok"]
    assert opt.main([str(bytecode), "--canonicalize"]) == 0
    assert "linalg.matmul" in capfd.readouterr().out


TOOLS = {
    "explain": (lambda path: main.main(["explain", str(path)]), 2),
    "run": (lambda path: run.main([str(path)]), 2),
    "opt": (lambda path: opt.main([str(path)]), 1),
}


@pytest.mark.parametrize("name", [b"a (b).mlir", b"\xff\xfe.mlir"])
@pytest.mark.parametrize("tool", TOOLS)
def test_names_of_files_are_only_names(
    tool: str, name: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_text(MATMUL)
    assert TOOLS[tool][0](path) == 0, capfd.readouterr().err


def test_deep_nesting(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep.mlir"
    path.write_text("module {" * 1500 + MATMUL + "}" * 1500)
    assert main.main(["explain", str(path), "--target", "avx2", "--threads", "1"]) in (0, 1)
    assert "Error" not in capfd.readouterr().err


def test_what_should_not_happen_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise ZeroDivisionError("why")

    monkeypatch.delenv("MORELLO_STRICT", raising=False)
    assert run_tool("morello", fail) == 1
    assert capfd.readouterr().err.startswith("morello: error: internal error: ZeroDivisionError: why\n")
    monkeypatch.setenv("MORELLO_STRICT", "1")
    with pytest.raises(ZeroDivisionError):
        run_tool("morello", fail)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("package", ["onnx", "torch_mlir"])
def test_models_without_their_importer(
    tool: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "morello_mlir.frontends.onnx", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / "net.onnx"
    path.write_bytes(b"no model")
    command, status = TOOLS[tool]
    assert command(path) == status
    error = capfd.readouterr().err
    assert "pip install 'morello-mlir[onnx]'" in error and "Traceback" not in error
    assert error.startswith(f"{path}:0:0: error: an ONNX model: this needs ")


def test_compile_says_what_takes_a_model(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x08\x07")
    with pytest.raises(InputError, match=r"frontends\.onnx\.compile takes it"):
        morello_mlir.compile(path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x @ w + b), x of [n, 48]."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("torch_mlir")
    from onnx import TensorProto, helper, numpy_helper

    values = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(values.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (48, 32)), ("b", (32,)))
    ]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"]), helper.make_node("Relu", ["g"], ["y"])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [8, 48]), ("y", [8, 32]))
    ]
    graph = helper.make_graph(nodes, "layer", ends[:1], ends[1:], weights)
    path = tmp_path / "layer.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


def test_models(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from onnx import numpy_helper

    assert main.main(["explain", str(model), "--target", "avx2", "--threads", "1"]) == 0
    out = capfd.readouterr().out
    assert "Matmul([1, 8, 48, 32]" in out and "(f32, GL, row_major, const)" in out and 'then "' in out
    assert opt.main([str(model)]) == 0
    out = capfd.readouterr().out
    assert "linalg.matmul" in out and out.count("morello.constant") == 1
    x = np.random.default_rng(1).standard_normal((8, 48)).astype(np.float32)
    import onnx

    w, b = map(numpy_helper.to_array, onnx.load(model).graph.initializer)
    np.savez(tmp_path / "args.npz", arg0=x)
    np.savez(tmp_path / "expect.npz", ret0=np.maximum(x @ w + b, 0))
    files = ["--args", str(tmp_path / "args.npz"), "--expect", str(tmp_path / "expect.npz")]
    assert run.main([str(model), *files, "--check", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["check"]["ok"] and report["expect"]["ok"]


def test_what_is_no_model(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"no model")
    for command, status in TOOLS.values():
        assert command(path) == status
        assert "not an ONNX model" in capfd.readouterr().err
        assert command(tmp_path / "missing.onnx") == status
        assert "missing.onnx: cannot read the model" in capfd.readouterr().err


def test_names() -> None:
    assert is_onnx("a/net.onnx") and not is_onnx("net.onnx.mlir") and not is_onnx("-")
