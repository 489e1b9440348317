// Panels of lhs that stay in L2 are not asked for.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s

// CHECK-NOT: memref.prefetch {{.*}}, read, locality<2>
func.func @near(%a: memref<1x96x512xf32>, %b: memref<1x512x128xf32>, %c: memref<1x96x128xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 96, 512, 128>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2 as [b, m/12, k, m%12]", "move rhs to L2 as [b, n/32, k, n%32]", "move out to L2",
                "tile m by 12:", "  move out to L1", "  tile n by 32:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x96x512xf32>, memref<1x512x128xf32>, memref<1x96x128xf32>) -> ()
  return
}
