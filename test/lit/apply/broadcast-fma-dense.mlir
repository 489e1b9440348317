// Rows of rhs of 4 that lie one after the other: a vector holds two k steps, and lhs is spread over it in pairs. In the end
// both halves are added up. Nothing is loaded under a mask.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func
// CHECK-NOT:     vector.maskedload
// CHECK:         vector.load {{.*}}, vector<8xf32>
// CHECK:         vector.load {{.*}}, vector<2xf32>
// CHECK-NEXT:    vector.shuffle {{.*}} [0, 0, 0, 0, 1, 1, 1, 1] : vector<2xf32>, vector<2xf32>
// CHECK-COUNT-4: vector.fma
// CHECK-NOT:     vector.fma
// CHECK:         vector.shuffle {{.*}} [4, 5, 6, 7, 0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
// CHECK-NEXT:    arith.addf {{.*}} : vector<8xf32>
// CHECK:         vector.store {{.*}}, vector<4xf32>
func.func @dense(%a: memref<1x2x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x2x4xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 4>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x4xf32>, memref<1x2x4xf32>) -> ()
  return
}
