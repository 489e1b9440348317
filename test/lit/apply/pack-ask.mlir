// Packing parts of rows that lie pages apart: rows eight further on are asked for, never beyond the last ones.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s

// CHECK-LABEL: func.func @far
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c64 step %c4
// CHECK:           %[[LATER:.*]] = arith.addi %[[ROW]], %c8
// CHECK:           arith.minsi %[[LATER]], %c60
// CHECK-COUNT-8:   memref.prefetch {{.*}}, read
// CHECK-NOT:       memref.prefetch
// CHECK:           vector.load
func.func @far(%a: memref<1x4x64xf32>, %b: memref<1x64x32xf32, strided<[262144, 4096, 1]>>, %c: memref<1x4x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 64, 32>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, s16384)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/32, k, n%32]", "move lhs to L2", "move out to L2",
                "move out to L1", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x4x64xf32>, memref<1x64x32xf32, strided<[262144, 4096, 1]>>, memref<1x4x32xf32>) -> ()
  return
}
