// A contraction becomes a call of a private function with one Spec; equal Specs share it.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// CHECK-LABEL: func @two
// CHECK-SAME: %[[A:.*]]: memref<4x5xf32>, %[[B:.*]]: memref<5x6xf32>, %[[C:.*]]: memref<4x6xf32>, %[[D:.*]]: memref<4x6xf32>
// CHECK-NOT: linalg
// CHECK-DAG: %[[PA:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[A]] : memref<4x5xf32> -> memref<f32>
// CHECK-DAG: %[[PB:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[B]]
// CHECK-DAG: %[[PC:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[C]]
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(%[[PA]], %[[PB]], %[[PC]]) : (memref<f32>, memref<f32>, memref<f32>) -> ()
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(
// CHECK-NOT: linalg
// CHECK: func private @morello_matmul_accum_1x4x5x6_f32(%[[A:.*]]: memref<f32>, %[[B:.*]]: memref<f32>, %[[C:.*]]: memref<f32>)
// CHECK-SAME: attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK-DAG: %[[VA:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [1, 4, 5], strides: [20, 5, 1] : memref<f32> to memref<1x4x5xf32>
// CHECK-DAG: %[[VB:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [1, 5, 6], strides: [30, 6, 1] : memref<f32> to memref<1x5x6xf32>
// CHECK-DAG: %[[VC:.*]] = memref.reinterpret_cast %[[C]] to offset: [0], sizes: [1, 4, 6], strides: [24, 6, 1] : memref<f32> to memref<1x4x6xf32>
// CHECK: "morello.spec"(%[[VA]], %[[VB]], %[[VC]]) {dims = array<i64: 1, 4, 5, 6>, function = "MatmulAccum",
// CHECK-SAME: operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial}
// CHECK-SAME: : (memref<1x4x5xf32>, memref<1x5x6xf32>, memref<1x4x6xf32>) -> ()
// CHECK-NEXT: return
// CHECK-NOT: func private
func.func @two(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<4x6xf32>, %d: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%c : memref<4x6xf32>)
  linalg.matmul {morello.group = 3 : i64} ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%d : memref<4x6xf32>)
  return
}

// -----

// Names that are taken are left alone, and other layouts are other functions.
// CHECK-LABEL: func @names
// CHECK: call @morello_matmul_accum_1x4x4x4_f64_1(
// CHECK: call @morello_matmul_accum_1x4x4x4_f64_2(
// CHECK: call @morello_matmul_accum_1x4x4x4_f64()
func.func @names(%a: memref<4x4xf64>, %b: memref<4x4xf64>, %c: memref<4x4xf64>) {
  linalg.matmul ins(%a, %b : memref<4x4xf64>, memref<4x4xf64>) outs(%c : memref<4x4xf64>)
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : memref<4x4xf64>, memref<4x4xf64>) outs(%c : memref<4x4xf64>)
  call @morello_matmul_accum_1x4x4x4_f64() : () -> ()
  return
}
func.func private @morello_matmul_accum_1x4x4x4_f64()

// -----

// The functions go into the module that the caller is in; other modules have their own.
// CHECK: module @inner
// CHECK: func @f
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
// CHECK: func private @morello_matmul_accum_1x4x4x4_f32(
// CHECK: func @g
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
// CHECK: func private @morello_matmul_accum_1x4x4x4_f32(
module @inner {
  func.func @f(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
    linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
    return
  }
}
func.func @g(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}
