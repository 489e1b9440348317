// The schedule of a nest is written onto it, and so is the goal in its canonical form, whose dims the schedule names.
// RUN: morello-opt %s --morello-search=target=avx2 | FileCheck %s
// CHECK-LABEL: @merged
// CHECK: dims = array<i64: 32>
// CHECK-SAME: operands = ["(f32, L1, [1])", "(f32, L1, [1])"]
// CHECK-SAME: schedule = ["rows vector d0
// CHECK-SAME: source = "search"
func.func @merged(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  "morello.nest2"(%a, %b) {
    function = "Map",
    dims = array<i64: 4, 8>,
    scan = array<i64>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [8, 1])"],
    body = "y = exp(x0)",
    serial
  } : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// A schedule by hand names the dims as they stand; its holes are filled.
// CHECK-LABEL: @given
// CHECK: dims = array<i64: 4, 8>
// CHECK-SAME: schedule = ["tile d0 by 2:", "    rows vector d1{{.*}}:", "        pass y{{.*}}"]
// CHECK-SAME: source = "manual"
func.func @given(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial,
    schedule = ["tile d0 by 2:", "    ?"]
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}
