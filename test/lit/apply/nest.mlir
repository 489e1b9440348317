// Nests become calls of functions, equal ones of one.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK: call @[[SOFTMAX:morello_softmax_4x21_[0-9a-f]+]](
// CHECK: call @[[SOFTMAX]](
// CHECK-NOT: morello.nest
func.func @softmax(%x: memref<4x21xf32>, %y: memref<4x21xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 4, 21>, scan = array<i64: 1>,
    operands = ["(f32, GL, [21, 1])", "(f32, GL, [21, 1])"],
    body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial,
    schedule = ["reciprocal", "rows vector d1:", "    pass m", "    pass s store e to y", "    pass y"]
  } : (memref<4x21xf32>, memref<4x21xf32>) -> ()
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 4, 21>, scan = array<i64: 1>,
    operands = ["(f32, GL, [21, 1])", "(f32, GL, [21, 1])"],
    body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)", serial,
    schedule = ["reciprocal", "rows vector d1:", "    pass m", "    pass s store e to y", "    pass y"]
  } : (memref<4x21xf32>, memref<4x21xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @shared(
// CHECK: call @morello_map_6_{{[0-9a-f]+}}(
func.func @shared(%x: memref<6xf32>) {
  "morello.nest2"(%x, %x) {
    function = "Map", dims = array<i64: 6>, scan = array<i64>,
    operands = ["(f32, GL, [1])", "(f32, GL, [1], is x0)"], body = "y = exp(x0)", threads = 2,
    schedule = ["parallel tile d0 by 3:", "    rows vector d0:", "        pass y"]
  } : (memref<6xf32>, memref<6xf32>) -> ()
  return
}

// Without a schedule a nest is left alone.
// CHECK-LABEL: func.func @alone(
// CHECK: "morello.nest2"
func.func @alone(%x: memref<6xf32>, %y: memref<6xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Map", dims = array<i64: 6>, scan = array<i64>,
    operands = ["(f32, GL, [1])", "(f32, GL, [1])"], body = "y = exp(x0)", serial
  } : (memref<6xf32>, memref<6xf32>) -> ()
  return
}

// A row at a time: the maximum, then the exponentials, which the output holds for the while, then the quotients. The
// last vector is read under a mask; what it holds beyond the row counts for nothing.
// CHECK: func.func private @[[SOFTMAX]](%{{.*}}: memref<f32>, %{{.*}}: index, %{{.*}}: memref<f32>, %{{.*}}: index)
// CHECK: scf.for
// CHECK: vector.load
// CHECK: vector.maskedload
// CHECK: arith.select
// CHECK: vector.shuffle
// CHECK-NOT: math.exp
// CHECK: vector.fma
// CHECK: vector.store
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK: vector.store

// The threads' shares.
// CHECK: scf.parallel
// CHECK: call @morello_map_share_6_
// CHECK: } {morello.threads}
