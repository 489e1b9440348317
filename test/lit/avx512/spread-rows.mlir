// Where shuffles run beside multiply-adds, rows of rhs with gaps between them share vectors too: each is loaded by itself,
// and they are brought together.
// RUN: morello-opt %s --morello-apply=target=znver5 | FileCheck %s
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @tile
// CHECK:         %[[A:.*]] = vector.load {{.*}}, vector<8xf32>
// CHECK:         %[[B:.*]] = vector.load {{.*}}, vector<8xf32>
// CHECK:         vector.shuffle %[[A]], %[[B]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// CHECK-COUNT-4: vector.fma
// CHECK-NOT:     vector.fma
// PLAIN-LABEL: func.func @tile
// PLAIN-COUNT-8: vector.fma
func.func @tile(%a: memref<1x2x4xf32>, %b: memref<1x4x8xf32, strided<[96, 24, 1]>>, %c: memref<1x2x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x8xf32, strided<[96, 24, 1]>>, memref<1x2x8xf32>) -> ()
  return
}
