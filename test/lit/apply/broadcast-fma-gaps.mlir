// Rows of rhs with gaps between them are a vector each.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func
// CHECK-COUNT-8: vector.fma
// CHECK-NOT:     vector.fma
// CHECK:         return
func.func @gaps(%a: memref<1x2x4xf32>, %b: memref<1x4x4xf32, strided<[20, 5, 1]>>, %c: memref<1x2x4xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 4>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x4xf32, strided<[20, 5, 1]>>, memref<1x2x4xf32>) -> ()
  return
}
