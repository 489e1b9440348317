// RUN: not morello-opt %s --morello-apply=target=avx2 --split-input-file 2>&1 | FileCheck %s

// CHECK: error: 'morello.nest2' op{{.*}}y needs s, which no earlier pass computes
func.func @order(%x: memref<4x8xf32>) {
  "morello.nest2"(%x, %x) {
    function = "Softmax", dims = array<i64: 4, 8>, scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [8, 1], is x0)"],
    body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial,
    schedule = ["rows vector d1:", "    pass m", "    pass y", "    pass s"]
  } : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// -----

// CHECK: error: 'morello.nest2' op{{.*}}the schedule has holes: run morello-search before
func.func @holes(%x: memref<6xf32>, %y: memref<6xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Map", dims = array<i64: 6>, scan = array<i64>,
    operands = ["(f32, GL, [1])", "(f32, GL, [1])"], body = "y = exp(x0)", serial,
    schedule = ["tile d0 by 2:", "    ?"]
  } : (memref<6xf32>, memref<6xf32>) -> ()
  return
}
