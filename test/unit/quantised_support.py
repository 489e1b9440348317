"""Modules with products of bytes."""

from __future__ import annotations


def product(m: int, k: int, n: int, zeros: tuple[int, int] | None = None, batch: str = "", mark: str = "") -> str:
    """A quantised product with zero points that are arguments, or numbers."""
    a, b, c = f"tensor<{batch}{m}x{k}xi8>", f"tensor<{batch}{k}x{n}xi8>", f"tensor<{batch}{m}x{n}xi32>"
    numbers = [] if zeros is None else [f"%{v} = arith.constant {z} : i32\n" for v, z in zip("xy", zeros, strict=True)]
    return f"""
    func.func @f(%a: {a}, %b: {b} {mark}{", %x: i32, %y: i32" if zeros is None else ""}) -> {c} {{
      {"".join(numbers)}
      %z = arith.constant 0 : i32
      %e = tensor.empty() : {c}
      %i = linalg.fill ins(%z : i32) outs(%e : {c}) -> {c}
      %r = linalg.quantized_{"batch_" if batch else ""}matmul ins(%a, %b, %x, %y : {a}, {b}, i32, i32)
        outs(%i : {c}) -> {c}
      return %r : {c}
    }}"""
