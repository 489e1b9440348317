// An argument that its caller says is constant, and that the function may write to, is an error.
// RUN: morello-opt %s --morello-lift --verify-diagnostics

func.func @written(%x: memref<4x8xf32>, %w: memref<8x16xf32> {morello.constant}, %y: memref<4x16xf32>, %z: f32) {
  // expected-error @+1 {{argument 1 of @written is 'morello.constant' and may be written to}}
  linalg.matmul ins(%x, %w : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<4x16xf32>)
  linalg.fill ins(%z : f32) outs(%w : memref<8x16xf32>)
  return
}
