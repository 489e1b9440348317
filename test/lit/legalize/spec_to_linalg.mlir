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

// What is done to the sums, where results hold them and where they do not.
// CHECK-LABEL: func.func @then
// CHECK: linalg.batch_matmul {{.*}} outs(%[[C:.*]] :
// CHECK: linalg.generic {{.*}} ins(%[[C]], %{{.*}} : {{.*}}) outs(%[[C]] :
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<1x4x6xi32>
// CHECK: linalg.fill {{.*}} outs(%[[SUMS]]
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]] : {{.*}}) outs(%{{.*}} : memref<1x4x6xi8>)
// CHECK: arith.trunci
// CHECK: memref.dealloc %[[SUMS]]
// CHECK-NOT: morello.spec
func.func @then(%a: memref<1x4x5xf32>, %b: memref<1x5x6xf32>, %c: memref<1x4x6xf32>, %bias: memref<1x4x6xf32, strided<[0, 0, 1]>>,
    %x: memref<1x4x5xi8>, %y: memref<1x5x6xi8>, %z: memref<1x4x6xi8>) {
  "morello.spec4"(%a, %b, %c, %bias) {function = "MatmulAccum", dims = array<i64: 1, 4, 5, 6>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    then = "y = max(add(x0, x1), 0.0:f32)", then_inputs = ["f32", "(f32, [n])"]}
    : (memref<1x4x5xf32>, memref<1x5x6xf32>, memref<1x4x6xf32>, memref<1x4x6xf32, strided<[0, 0, 1]>>) -> ()
  "morello.spec"(%x, %y, %z) {function = "Matmul", dims = array<i64: 1, 4, 5, 6>,
    operands = ["(u8, GL, row_major)", "(i8, GL, row_major)", "(i8, GL, row_major)"], serial,
    then = "y = cast(shr(x0, 8:i32), i8)", then_inputs = ["i32"]}
    : (memref<1x4x5xi8>, memref<1x5x6xi8>, memref<1x4x6xi8>) -> ()
  return
}

// A chain, whatever its schedule: its stages one after another, with buffers between them.
// CHECK-LABEL: func.func @chain
// CHECK: %[[T0:.*]] = memref.alloc() : memref<3x5x13xf32>
// CHECK: linalg.fill {{.*}} outs(%[[T0]]
// CHECK: linalg.batch_matmul ins(%arg0, %arg1 : {{.*}}) outs(%[[T0]]
// CHECK: %[[T1:.*]] = memref.alloc() : memref<3x5x13xf32>
// CHECK: math.exp
// CHECK: linalg.batch_matmul ins(%[[T1]], %arg2 : {{.*}}) outs(%arg3
// CHECK: memref.dealloc %[[T0]]
// CHECK: memref.dealloc %[[T1]]
// CHECK-NOT: morello.
func.func @chain(%a: memref<3x5x5xf32>, %b: memref<3x5x13xf32>, %c: memref<3x13x4xf32>, %o: memref<3x5x4xf32>) {
  "morello.chain4"(%a, %b, %c, %o) {
    function = "Chain", dims = array<i64: 3, 5>, serial, schedule = ["?"],
    stages = ["t0 = Matmul([3, 5, 5, 13], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "t1 = Map([3, 5, 13], (f32, GL, [65, 13, 1]), (f32, GL, [65, 13, 1]), \22y = exp(x0)\22, serial) of t0",
              "y = Matmul([3, 5, 13, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t1, x2"]
  } : (memref<3x5x5xf32>, memref<3x5x13xf32>, memref<3x13x4xf32>, memref<3x5x4xf32>) -> ()
  return
}
