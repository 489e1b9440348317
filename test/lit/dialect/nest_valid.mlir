// RUN: morello-opt %s | FileCheck %s
// CHECK-LABEL: @row_sums
// CHECK: "morello.nest2"
func.func @row_sums(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// Strides say where elements are, from the memref's first on: its shape does not matter.
// CHECK-LABEL: @views
// CHECK: "morello.nest2"
func.func @views(%a: memref<8x4xf32, strided<[4, 1], offset: 3>>, %b: memref<1x4xf32>) {
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [1, 4])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<8x4xf32, strided<[4, 1], offset: 3>>, memref<1x4xf32>) -> ()
  return
}
