// The output of a Spec is row-major: a column-major one is computed as the transposed product of swapped operands.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// CHECK-LABEL: func @column_major_output
// CHECK-SAME: %[[A:.*]]: memref<4x5xf32>, %[[B:.*]]: memref<5x6xf32>, %[[C:.*]]: memref<6x4xf32>
// CHECK-DAG: %[[PA:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[A]]
// CHECK-DAG: %[[PB:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[B]]
// CHECK-DAG: %[[PC:base_buffer[_0-9]*]], %{{.*}} = memref.extract_strided_metadata %[[C]]
// CHECK: call @morello_matmul_accum_1x6x5x4_f32(%[[PB]], %[[PA]], %[[PC]])
// CHECK: operands = ["(f32, GL, col_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"]
func.func @column_major_output(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<6x4xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>]
    ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%c : memref<6x4xf32>)
  return
}

// -----

// A row-major output stays, whatever the inputs.
// CHECK-LABEL: func @row_major_output
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(
// CHECK: operands = ["(f32, GL, col_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"]
func.func @row_major_output(%a: memref<5x4xf32>, %b: memref<6x5xf32>, %c: memref<4x6xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : memref<5x4xf32>, memref<6x5xf32>) outs(%c : memref<4x6xf32>)
  return
}

// -----

// matvec is a vecmat with a column-major matrix.
// CHECK-LABEL: func @matvec
// CHECK: call @morello_matmul_accum_1x1x5x4_f32(
// CHECK: operands = ["(f32, GL, row_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"]
func.func @matvec(%a: memref<4x5xf32>, %b: memref<5xf32>, %c: memref<4xf32>) {
  linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32>) outs(%c : memref<4xf32>)
  return
}

// -----

// Not where the result has gaps: nothing is gained.
// CHECK-LABEL: func @matvec_strided
// CHECK: call @morello_matmul_accum_1x4x5x1_f32(
// CHECK: operands = ["(f32, GL, row_major)", "(f32, GL, col_major)", "(f32, GL, row_major, s16, gapped)"]
func.func @matvec_strided(%a: memref<4x5xf32>, %b: memref<5xf32>, %c: memref<4xf32, strided<[4]>>) {
  linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32>) outs(%c : memref<4xf32, strided<[4]>>)
  return
}

// -----

// A single column lies along k, as the kernel for products of vectors wants it.
// CHECK-LABEL: func @dot
// CHECK: call @morello_matmul_accum_1x1x5x1_f64(
// CHECK: operands = ["(f64, GL, row_major)", "(f64, GL, col_major)", "(f64, GL, row_major)"]
func.func @dot(%a: memref<5xf64>, %b: memref<5xf64>, %c: memref<f64>) {
  linalg.dot ins(%a, %b : memref<5xf64>, memref<5xf64>) outs(%c : memref<f64>)
  return
}
