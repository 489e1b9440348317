// Inputs whose contents never change are constant operands, named by what they hold.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s
// RUN: morello-opt %s --morello-lift=pack-constants=false --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: morello-opt %s --morello-lift=pack-limit=0 --split-input-file | FileCheck %s --check-prefix=OFF

// OFF-NOT: const)
// OFF-NOT: constants =

// Parts of one global, through views; equal ones have equal names.
// CHECK-LABEL: func @views
// CHECK: call @morello_matmul_accum_1x4x8x16_f32(
// CHECK: call @morello_matmul_accum_1x4x8x16_f32_1(
// CHECK: call @morello_matmul_accum_1x4x8x16_f32(
// CHECK-LABEL: func private @morello_matmul_accum_1x4x8x16_f32(
// CHECK: constants = {rhs = "@w+0"}
// CHECK-SAME: operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"]
// CHECK-LABEL: func private @morello_matmul_accum_1x4x8x16_f32_1(
// CHECK: constants = {rhs = "@w+128"}
memref.global "private" constant @w : memref<2x128xf32> = dense<1.0>
func.func @views(%x: memref<4x8xf32>, %y: memref<4x16xf32>) {
  %w = memref.get_global @w : memref<2x128xf32>
  %0 = memref.expand_shape %w [[0], [1, 2]] output_shape [2, 8, 16] : memref<2x128xf32> into memref<2x8x16xf32>
  %1 = memref.subview %0[1, 0, 0] [1, 8, 16] [1, 1, 1] : memref<2x8x16xf32> to memref<8x16xf32, strided<[16, 1], offset: 128>>
  %2 = memref.subview %0[0, 0, 0] [1, 8, 16] [1, 1, 1] : memref<2x8x16xf32> to memref<8x16xf32, strided<[16, 1]>>
  linalg.matmul ins(%x, %2 : memref<4x8xf32>, memref<8x16xf32, strided<[16, 1]>>) outs(%y : memref<4x16xf32>)
  linalg.matmul ins(%x, %1 : memref<4x8xf32>, memref<8x16xf32, strided<[16, 1], offset: 128>>) outs(%y : memref<4x16xf32>)
  linalg.matmul ins(%x, %2 : memref<4x8xf32>, memref<8x16xf32, strided<[16, 1]>>) outs(%y : memref<4x16xf32>)
  return
}

// -----

// An argument of which the caller says so. With the output column-major the roles are exchanged.
// CHECK-LABEL: func private @morello_matmul_accum
// CHECK: constants = {lhs = "@argument.1+0"}
// CHECK-SAME: operands = ["(f32, GL, col_major, const)", "(f32, GL, col_major)", "(f32, GL, row_major)"]
func.func @argument(%x: memref<4x8xf32>, %w: memref<8x16xf32> {morello.constant}, %y: memref<16x4xf32>) {
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%x, %w : memref<4x8xf32>, memref<8x16xf32>) outs(%y : memref<16x4xf32>)
  return
}

// -----

// A weight for all iterations of a loop round the Spec.
// CHECK: constants = {rhs = "@w+0"}
memref.global "private" constant @w : memref<8x16xf32> = dense<1.0>
func.func @loop(%x: memref<3x4x8xf32, strided<[8, 100, 1]>>, %y: memref<3x4x16xf32, strided<[100, 16, 1]>>) {
  %w = memref.get_global @w : memref<8x16xf32>
  linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : memref<3x4x8xf32, strided<[8, 100, 1]>>, memref<8x16xf32>) outs(%y : memref<3x4x16xf32, strided<[100, 16, 1]>>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  }
  return
}
