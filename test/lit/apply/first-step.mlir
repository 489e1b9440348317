// The first reduction step stores what later ones add to: a flag that the loop decides, never true in a remainder.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @split
// CHECK:         scf.for %[[K:.*]] = %c0 to %c8 step %c4 {
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[K]], %c0 : index
// CHECK:           call @morello_scalar_2x4x3_{{.*}}, %[[FIRST]])
// CHECK:         }
// CHECK:         call @morello_scalar_2x1x3_{{.*}}, %false)
func.func @split(%a: memref<1x2x9xf32>, %b: memref<1x9x3xf32>, %c: memref<1x2x3xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 2, 9, 3>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "move lhs to L2", "move rhs to L2", "move out to L2",
                "split k by 4:", "  kernel scalar", "rest:", "  kernel scalar"]
  } : (memref<1x2x9xf32>, memref<1x9x3xf32>, memref<1x2x3xf32>) -> ()
  return
}

// One trip: it is the first one.
// CHECK-LABEL: func.func @once
// CHECK-NOT:     scf.if
// CHECK:         arith.constant 0.0
// CHECK:         scf.for
// CHECK:         return
func.func @once(%a: memref<1x2x9xf32>, %b: memref<1x9x3xf32>, %c: memref<1x2x3xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 2, 9, 3>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "move lhs to L2", "move rhs to L2", "move out to L2", "kernel scalar"]
  } : (memref<1x2x9xf32>, memref<1x9x3xf32>, memref<1x2x3xf32>) -> ()
  return
}

// CHECK: func.func private @morello_scalar_2x1x3_{{.*}}%[[FLAG:.*]]: i1)
// CHECK: scf.if %[[FLAG]] -> (f32) {
