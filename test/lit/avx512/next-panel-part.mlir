// Where panels of lhs do not stay in L2 as a whole, parts along k are asked for too, small as they are together.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s

// CHECK: memref.prefetch {{.*}}, read, locality<2>
func.func @part(%a: memref<1x768x2048xf32>, %b: memref<1x2048x128xf32>, %c: memref<1x768x128xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 768, 2048, 128>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to GL as [b, m/12, k, m%12]", "split k by 128:",
                "  move rhs to L2 as [b, n/32, k, n%32]", "  tile m by 12:", "    move lhs to L2", "    move out to L2",
                "    move out to L1", "    tile n by 32:", "      move out to VRF", "      kernel broadcast_fma"]
  } : (memref<1x768x2048xf32>, memref<1x2048x128xf32>, memref<1x768x128xf32>) -> ()
  return
}
