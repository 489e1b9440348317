// Static strides are part of the types, offsets are arguments of the call.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// CHECK-LABEL: func @offsets
// CHECK-SAME: %[[A:.*]]: memref<4x5xf32, strided<[8, 1], offset: 3>>, %[[B:.*]]: memref<5x6xf32>, %[[C:.*]]: memref<4x6xf32, strided<[12, 2], offset: ?>>
// CHECK-DAG: %[[PA:base_buffer[_0-9]*]], %[[OA:offset[_0-9]*]], %{{sizes.*}} = memref.extract_strided_metadata %[[A]]
// CHECK-DAG: %[[PB:base_buffer[_0-9]*]], %{{offset.*}}, %{{sizes.*}} = memref.extract_strided_metadata %[[B]]
// CHECK-DAG: %[[PC:base_buffer[_0-9]*]], %[[OC:offset[_0-9]*]], %{{sizes.*}} = memref.extract_strided_metadata %[[C]]
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(%[[PA]], %[[PB]], %[[PC]], %[[OA]], %[[OC]])
// CHECK: func private @morello_matmul_accum_1x4x5x6_f32(%[[A:.*]]: memref<f32>, %[[B:.*]]: memref<f32>, %[[C:.*]]: memref<f32>, %[[OA:.*]]: index, %[[OC:.*]]: index)
// CHECK: memref.reinterpret_cast %[[A]] to offset: [%[[OA]]], sizes: [1, 4, 5], strides: [32, 8, 1] : memref<f32> to memref<1x4x5xf32, strided<[32, 8, 1], offset: ?>>
// CHECK: memref.reinterpret_cast %[[C]] to offset: [%[[OC]]], sizes: [1, 4, 6], strides: [48, 12, 2]
// CHECK: operands = ["(f32, GL, row_major, s32)", "(f32, GL, row_major)", "(f32, GL, row_major, s16, gapped)"]
func.func @offsets(%a: memref<4x5xf32, strided<[8, 1], offset: 3>>, %b: memref<5x6xf32>,
                   %c: memref<4x6xf32, strided<[12, 2], offset: ?>>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32, strided<[8, 1], offset: 3>>, memref<5x6xf32>)
    outs(%c : memref<4x6xf32, strided<[12, 2], offset: ?>>)
  return
}

// -----

// A permuted memref is a layout; so is an affine map that strides express.
// CHECK-LABEL: func @permuted
// CHECK: operands = ["(f32, GL, col_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"]
func.func @permuted(%a: memref<4x5xf32, strided<[1, 4]>>, %b: memref<5x6xf32, affine_map<(i, j) -> (j * 5 + i)>>, %c: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32, strided<[1, 4]>>, memref<5x6xf32, affine_map<(i, j) -> (j * 5 + i)>>)
    outs(%c : memref<4x6xf32>)
  return
}

// -----

// An input may repeat its elements.
// CHECK-LABEL: func @repeated
// CHECK: dims = array<i64: 1, 4, 5, 6>
func.func @repeated(%a: memref<4x5xf32, strided<[0, 1]>>, %b: memref<5x6xf32, strided<[1, 1]>>, %c: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32, strided<[0, 1]>>, memref<5x6xf32, strided<[1, 1]>>) outs(%c : memref<4x6xf32>)
  return
}
