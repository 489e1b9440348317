"""What the frontends have in common, without any framework."""

from __future__ import annotations

import sys

import pytest

from morello_mlir.frontends import need


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs 'torch'.*pip install 'morello-mlir\[torch\]'"):
        need("torch", "torch")


@pytest.mark.parametrize(
    "frontend, package", [("torch", "torch"), ("torch", "torch_mlir"), ("jax", "jax"), ("onnx", "onnx")]
)
def test_frontends_without_their_packages(monkeypatch, frontend, package):
    monkeypatch.delitem(sys.modules, f"morello_mlir.frontends.{frontend}", raising=False)
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install"):
        __import__(f"morello_mlir.frontends.{frontend}")
