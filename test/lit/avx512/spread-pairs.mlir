// Tiles of one vector, whose multiply-adds take a load each: where shuffles run beside multiply-adds, pairs of elements of
// two rows of lhs are loaded at once and spread.
// RUN: morello-opt %s --morello-apply=target=znver5 | FileCheck %s
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @tile
// CHECK:         vector.load {{.*}}, vector<2xf32>
// CHECK-NEXT:    vector.bitcast {{.*}} : vector<2xf32> to vector<1xf64>
// CHECK-NEXT:    vector.broadcast {{.*}} : vector<1xf64> to vector<8xf64>
// CHECK-NEXT:    vector.bitcast {{.*}} : vector<8xf64> to vector<16xf32>
// CHECK-NEXT:    vector.shuffle {{.*}} [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14]
// CHECK-NEXT:    vector.shuffle {{.*}} [1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15]
// CHECK-COUNT-6: memref.load
// PLAIN-LABEL: func.func @tile
// PLAIN-NOT:     vector.shuffle
func.func @tile(%a: memref<1x8x4xf32>, %b: memref<1x4x16xf32>, %c: memref<1x8x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 4, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x8x4xf32>, memref<1x4x16xf32>, memref<1x8x16xf32>) -> ()
  return
}
