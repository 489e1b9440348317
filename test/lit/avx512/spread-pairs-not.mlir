// Pairs are not loaded where lhs does not lie along k.
// RUN: morello-opt %s --morello-apply=target=znver5 | FileCheck %s

// CHECK-NOT: vector.shuffle
func.func @across(%a: memref<1x8x4xf32, strided<[32, 1, 8]>>, %b: memref<1x4x16xf32>, %c: memref<1x8x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 4, 16>,
    operands = ["(f32, L1, col_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x8x4xf32, strided<[32, 1, 8]>>, memref<1x4x16xf32>, memref<1x8x16xf32>) -> ()
  return
}
