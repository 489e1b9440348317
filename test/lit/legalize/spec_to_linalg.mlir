// RUN: morello-opt %s --morello-spec-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @overwrites
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%arg2 : memref<1x4x6xf32>)
// CHECK: linalg.batch_matmul ins(%arg0, %arg1 : {{.*}}) outs(%arg2 : memref<1x4x6xf32>)
func.func @overwrites(%a: memref<1x4x5xf32>, %b: memref<1x5x6xf32>, %c: memref<1x4x6xf32>) {
  "morello.spec"(%a, %b, %c) {function = "Matmul", dims = array<i64: 1, 4, 5, 6>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial, schedule = ["?"]}
    : (memref<1x4x5xf32>, memref<1x5x6xf32>, memref<1x4x6xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @accumulates
// CHECK-NOT: linalg.fill
// CHECK: linalg.batch_matmul
// CHECK-NOT: morello.spec
func.func @accumulates(%a: memref<1x4x5xf64>, %b: memref<1x5x6xf64, strided<[30, 1, 5]>>, %c: memref<1x4x6xf64>) {
  "morello.spec"(%a, %b, %c) {function = "MatmulAccum", dims = array<i64: 1, 4, 5, 6>,
    operands = ["(f64, GL, row_major)", "(f64, GL, col_major)", "(f64, GL, row_major)"], serial}
    : (memref<1x4x5xf64>, memref<1x5x6xf64, strided<[30, 1, 5]>>, memref<1x4x6xf64>) -> ()
  return
}

// Bytes are widened by the signs that the dtypes say.
// CHECK-LABEL: func.func @bytes
// CHECK: linalg.generic
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %[[C:.*]]: i32):
// CHECK-DAG: arith.extui %[[A]] : i8 to i32
// CHECK-DAG: arith.extsi %[[B]] : i8 to i32
// CHECK: arith.addi %[[C]],
func.func @bytes(%a: memref<1x4x5xi8>, %b: memref<1x5x6xi8>, %c: memref<1x4x6xi32>) {
  "morello.spec"(%a, %b, %c) {function = "MatmulAccum", dims = array<i64: 1, 4, 5, 6>,
    operands = ["(u8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"], serial}
    : (memref<1x4x5xi8>, memref<1x5x6xi8>, memref<1x4x6xi32>) -> ()
  return
}
