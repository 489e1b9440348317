// The register tile: the k loop by four with accumulators as iter_args, C added at the end. Rows of 20 are two
// and a half AVX2 vectors: the last is loaded as the half that it is.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @tile
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c4 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK:           vector.load
// CHECK:           vector.load
// CHECK:           vector.load {{.*}}, vector<4xf32>
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 1, 2, 3, 4, 4, 4, 4] : vector<4xf32>, vector<4xf32>
// CHECK:           memref.load
// CHECK:           vector.broadcast
// CHECK-COUNT-3:   vector.fma
// CHECK:           memref.load
// CHECK:           vector.broadcast
// CHECK-COUNT-21:  vector.fma
// CHECK:           scf.yield
// CHECK:         }
// The last step of 65.
// CHECK-COUNT-6: vector.fma
// CHECK-NOT:     vector.fma
// CHECK:         arith.addf
// CHECK:         vector.store
func.func @tile(%a: memref<1x2x65xf32>, %b: memref<1x65x20xf32>, %c: memref<1x2x20xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 65, 20>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x65xf32>, memref<1x65x20xf32>, memref<1x2x20xf32>) -> ()
  return
}

// Few steps have no loop.
// CHECK-LABEL: func.func @short
// CHECK-NOT:     scf.for
// CHECK-COUNT-54: vector.fma
// CHECK-NOT:     vector.fma
// CHECK:         return
func.func @short(%a: memref<1x2x9xf32>, %b: memref<1x9x20xf32>, %c: memref<1x2x20xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 9, 20>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x9xf32>, memref<1x9x20xf32>, memref<1x2x20xf32>) -> ()
  return
}
