// What may change, or starts at a place that only run time knows, is no constant operand.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s --implicit-check-not="const)" --implicit-check-not="constants ="

// CHECK-COUNT-5: "morello.spec"

memref.global "private" @w : memref<8x16xf32> = dense<1.0>
func.func @variable(%x: memref<4x8xf32>, %y: memref<4x16xf32>) {
  %w = memref.get_global @w : memref<8x16xf32>
  linalg.matmul ins(%x, %w : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<4x16xf32>)
  return
}

// -----

func.func @argument(%x: memref<4x8xf32>, %w: memref<8x16xf32> {morello.unaliased}, %y: memref<4x16xf32>) {
  linalg.matmul ins(%x, %w : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<4x16xf32>)
  return
}

// -----

memref.global "private" constant @w : memref<2x8x16xf32> = dense<1.0>
func.func @moving(%x: memref<4x8xf32>, %y: memref<4x16xf32>, %i: index) {
  %w = memref.get_global @w : memref<2x8x16xf32>
  %0 = memref.subview %w[%i, 0, 0] [1, 8, 16] [1, 1, 1] : memref<2x8x16xf32> to memref<8x16xf32, strided<[16, 1], offset: ?>>
  linalg.matmul ins(%x, %0 : memref<4x8xf32>, memref<8x16xf32, strided<[16, 1], offset: ?>>) outs(%y : memref<4x16xf32>)
  return
}

// -----

memref.global "private" constant @w : memref<640xi8> = dense<1>
func.func @bytes(%x: memref<4x8xf32>, %y: memref<4x16xf32>) {
  %c64 = arith.constant 64 : index
  %w = memref.get_global @w : memref<640xi8>
  %0 = memref.view %w[%c64][] : memref<640xi8> to memref<8x16xf32>
  linalg.matmul ins(%x, %0 : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<4x16xf32>)
  return
}

// -----

// Every iteration of the loop round the Spec has a weight of its own.
memref.global "private" constant @w : memref<3x2x8x16xf32> = dense<1.0>
func.func @loop(%x: memref<3x4x2x8xf32>, %y: memref<4x16x3xf32>) {
  %w = memref.get_global @w : memref<3x2x8x16xf32>
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k, q) -> (b, m, q, k)>, affine_map<(b, m, n, k, q) -> (b, q, k, n)>, affine_map<(b, m, n, k, q) -> (m, n, b)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<3x4x2x8xf32>, memref<3x2x8x16xf32>) outs(%y : memref<4x16x3xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  }
  return
}
