// Many loops become b, m, k and n: merged where memory allows, else in a loop nest around the Spec.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// Two dims each that are neighbours in memory are one.
// CHECK-LABEL: func @merged
// CHECK-NOT: scf.for
// CHECK: "morello.spec"{{.*}}dims = array<i64: 1, 6, 20, 42>
// CHECK-SAME: (memref<1x6x20xf32>, memref<1x20x42xf32>, memref<1x6x42xf32>)
func.func @merged(%a: memref<2x3x4x5xf32>, %b: memref<4x5x6x7xf32>, %c: memref<2x3x6x7xf32>) {
  linalg.contract indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d)>, affine_map<(a, b, c, d, e, f) -> (c, d, e, f)>,
                                   affine_map<(a, b, c, d, e, f) -> (a, b, e, f)>]
    ins(%a, %b : memref<2x3x4x5xf32>, memref<4x5x6x7xf32>) outs(%c : memref<2x3x6x7xf32>)
  return
}

// -----

// Gaps keep them apart.
// CHECK-LABEL: func @not_merged
// CHECK: "morello.spec"{{.*}}dims = array<i64: 2, 3, 20, 42>
// CHECK-SAME: memref<2x20x42xf32, strided<[0, 42, 1]>>
func.func @not_merged(%a: memref<2x3x4x5xf32, strided<[100, 20, 5, 1]>>, %b: memref<4x5x6x7xf32>, %c: memref<2x3x6x7xf32>) {
  linalg.contract indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d)>, affine_map<(a, b, c, d, e, f) -> (c, d, e, f)>,
                                   affine_map<(a, b, c, d, e, f) -> (a, b, e, f)>]
    ins(%a, %b : memref<2x3x4x5xf32, strided<[100, 20, 5, 1]>>, memref<4x5x6x7xf32>) outs(%c : memref<2x3x6x7xf32>)
  return
}

// -----

// A batch that one operand does not have is more rows of one matrix, or of the transposed one.
// CHECK-LABEL: func @batch_into_rows
// CHECK: "morello.spec"{{.*}}dims = array<i64: 1, 12, 5, 6>
func.func @batch_into_rows(%a: memref<3x4x5xf32>, %b: memref<5x6xf32>, %c: memref<3x4x6xf32>) {
  linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : memref<3x4x5xf32>, memref<5x6xf32>) outs(%c : memref<3x4x6xf32>)
  return
}

// -----

// Where rows do not follow one another, the operand without the batch is broadcast.
// CHECK-LABEL: func @batch_broadcast
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [3, 4, 5], strides: [0, 5, 1]
// CHECK: "morello.spec"{{.*}}dims = array<i64: 3, 4, 5, 6>
func.func @batch_broadcast(%a: memref<4x5xf32>, %b: memref<3x5x6xf32>, %c: memref<3x4x6xf32>) {
  linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : memref<4x5xf32>, memref<3x5x6xf32>) outs(%c : memref<3x4x6xf32>)
  return
}

// -----

// Loops of one trip vanish.
// CHECK-LABEL: func @ones
// CHECK: "morello.spec"{{.*}}dims = array<i64: 1, 1, 5, 1>
func.func @ones(%a: memref<1x1x5xf32>, %b: memref<1x5x1xf32>, %c: memref<1x1x1xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<1x1x5xf32>, memref<1x5x1xf32>) outs(%c : memref<1x1x1xf32>)
  return
}

// -----

// A batch that is not slowest is a loop around the Spec: within it rows are what they seem.
// CHECK-LABEL: func @batch_inside
// CHECK: func private @morello_matmul_accum_1x4x5x6_f32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[C5:.*]] = arith.constant 5 : index
// CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
// CHECK: scf.for %[[I:.*]] = %[[C0]] to %[[C3]] step %[[C1]] {
// CHECK-NEXT: %[[OA:.*]] = arith.muli %[[I]], %[[C5]]
// CHECK-NEXT: %[[OB:.*]] = arith.muli %[[I]], %[[C6]]
// CHECK-NEXT: %[[OC:.*]] = arith.muli %[[I]], %[[C6]]
// CHECK-NEXT: memref.reinterpret_cast %{{.*}} to offset: [%[[OA]]], sizes: [1, 4, 5], strides: [60, 15, 1]
// CHECK-NEXT: memref.reinterpret_cast %{{.*}} to offset: [%[[OB]]], sizes: [1, 5, 6], strides: [90, 18, 1]
// CHECK-NEXT: memref.reinterpret_cast %{{.*}} to offset: [%[[OC]]], sizes: [1, 4, 6], strides: [72, 18, 1]
// CHECK-NEXT: "morello.spec"
func.func @batch_inside(%a: memref<4x3x5xf32>, %b: memref<5x3x6xf32>, %c: memref<4x3x6xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, b, k, n) -> (m, b, k)>, affine_map<(m, b, k, n) -> (k, b, n)>, affine_map<(m, b, k, n) -> (m, b, n)>]
    ins(%a, %b : memref<4x3x5xf32>, memref<5x3x6xf32>) outs(%c : memref<4x3x6xf32>)
  return
}

// -----

// Reductions in different orders do not merge; the loop around the Spec is innermost.
// CHECK-LABEL: func @reductions
// CHECK: call @morello_matmul_accum_1x3x7x4_f32(
// CHECK: scf.for
// CHECK: "morello.spec"{{.*}}"(f32, GL, row_major, s16)", "(f32, GL, row_major, s64)"
func.func @reductions(%a: memref<3x4x7xf32>, %b: memref<7x4x4xf32>, %c: memref<3x4xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k, l) -> (m, k, l)>, affine_map<(m, n, k, l) -> (l, k, n)>, affine_map<(m, n, k, l) -> (m, n)>]
    ins(%a, %b : memref<3x4x7xf32>, memref<7x4x4xf32>) outs(%c : memref<3x4xf32>)
  return
}

// -----

// Tiled operands: the Spec is the tile product along k, since runs of elements are worth more than long strides.
// CHECK-LABEL: func @mmt4d
// CHECK: call @morello_matmul_accum_16x8x32x8_f32(
// CHECK: scf.for
// CHECK: "morello.spec"{{.*}}operands = ["(f32, GL, col_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"]
func.func @mmt4d(%a: memref<16x32x8x1xf32>, %b: memref<16x32x8x1xf32>, %c: memref<16x16x8x8xf32>) {
  linalg.mmt4d ins(%a, %b : memref<16x32x8x1xf32>, memref<16x32x8x1xf32>) outs(%c : memref<16x16x8x8xf32>)
  return
}
