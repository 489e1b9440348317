// Panels of lhs that together do not stay in L2 come from the last-level cache, or from memory: the kernels that read one
// ask for the next, each for a part of it, into L2.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s

// Four kernels of 12 x 32 read a panel of 512 x 12 elements: one line in each of 256 iterations, so two ask for all of it.
// CHECK-LABEL: func.func @far
// CHECK:         scf.for %[[M:.*]] = %c0 to %c1536 step %c12
// CHECK:           scf.for %[[N:.*]] = %c0 to %c128 step %c32
// CHECK:             %[[KERNEL:.*]] = arith.divui %[[N]], %c32
// CHECK:             %[[PART:.*]] = arith.muli %[[KERNEL]], %c4096
// CHECK:             %[[WITHIN:.*]] = arith.remui %[[PART]], %c6144
// CHECK:             %[[AT:.*]] = arith.addi %{{.*}}, %[[WITHIN]]
// CHECK:             call @morello_broadcast_fma_12x32_{{[0-9a-f]*}}({{.*}}, %c512{{.*}}, %[[AT]], %{{.*}})
// CHECK:       func.func private @morello_broadcast_fma_12x32_
// CHECK:         scf.for
// CHECK:           memref.prefetch {{.*}}, read, locality<2>, data
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func @far(%a: memref<1x1536x512xf32>, %b: memref<1x512x128xf32>, %c: memref<1x1536x128xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1536, 512, 128>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to GL as [b, m/12, k, m%12]", "move rhs to L2 as [b, n/32, k, n%32]", "tile m by 12:",
                "  move lhs to L2", "  move out to L2", "  move out to L1", "  tile n by 32:", "    move out to VRF",
                "    kernel broadcast_fma"]
  } : (memref<1x1536x512xf32>, memref<1x512x128xf32>, memref<1x1536x128xf32>) -> ()
  return
}
