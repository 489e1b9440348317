// Packing where the packed dim has unit stride: rows are copied as they lie, four at once across all panels; panels are one
// row longer than needed, and the last one is padded with zeros.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s

// CHECK-LABEL: func.func @pack_rhs
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:         %[[ARENA:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4608xi8>
// CHECK:         memref.view %[[ARENA]][%c0][] : memref<4608xi8> to memref<1152xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c8 step %c4 {
// CHECK-COUNT-17:  vector.load {{.*}}vector<16xf32>
// CHECK:           vector.load {{.*}}vector<8xf32>
// CHECK-NEXT:      vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK:           vector.store %[[ZERO]]
// CHECK:         }
// CHECK:         memref.view %[[ARENA]][%c0][] : memref<4608xi8> to memref<1x2x9x64xf32>
// CHECK:         memref.subview {{.*}} to memref<1x2x8x64xf32, strided<[1152, 576, 64, 1]>>
// CHECK:         memref.dealloc %[[ARENA]]
func.func @pack_rhs(%a: memref<1x4x8xf32>, %b: memref<1x8x88xf32>, %c: memref<1x4x88xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 88>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/64, k, n%64]", "move lhs to L2", "move out to L2",
                "tile n by 64:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma",
                "rest:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x4x8xf32>, memref<1x8x88xf32>, memref<1x4x88xf32>) -> ()
  return
}
