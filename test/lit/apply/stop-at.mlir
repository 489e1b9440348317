// Stopping early leaves legal programs with smaller Specs that carry the rest of the schedule, and going on from any of them
// ends without Specs.
// RUN: morello-opt %s --morello-apply="target=avx2 stop-at=2" | FileCheck %s --check-prefix=STEPS
// RUN: morello-opt %s --morello-apply="target=avx2 stop-at=pack" | FileCheck %s --check-prefix=PACK
// RUN: morello-opt %s --morello-apply="target=avx2 stop-at=kernel" | FileCheck %s --check-prefix=KERNEL
// RUN: morello-opt %s --pass-pipeline="builtin.module(morello-apply{target=avx2 stop-at=2},morello-apply{target=avx2 stop-at=kernel},morello-apply{target=avx2})" | FileCheck %s --check-prefix=DONE

// After to_accum and split: whether this is the first step is known when the program runs.
// STEPS-LABEL: func.func @product
// STEPS:         scf.for %[[K:.*]] = %c0 to %c64 step %c32 {
// STEPS:           %[[FIRST:.*]] = arith.cmpi eq, %[[K]], %c0
// STEPS:           scf.if %[[FIRST]] {
// STEPS:             "morello.spec"({{.*}}) {dims = array<i64: 1, 12, 32, 16>, function = "Matmul", {{.*}}schedule = ["to_accum", "move rhs to L2 as [b, n/16, k, n%16]"
// STEPS:           } else {
// STEPS:             "morello.spec"({{.*}}) {dims = array<i64: 1, 12, 32, 16>, function = "MatmulAccum", {{.*}}schedule = ["move rhs to L2 as [b, n/16, k, n%16]"
// STEPS:           }
// STEPS:         }

// PACK-LABEL: func.func @product
// PACK-NOT:     memref.alloc
// PACK:         "morello.spec"{{.*}}schedule = ["to_accum", "move rhs to L2 as

// In registers a Spec takes and returns vectors; packed operands have the shape of their panels.
// KERNEL-LABEL: func.func private @morello_registers_6x32x16_
// KERNEL:         %[[TILE:.*]]:12 = "morello.spec"({{.*}}) {dims = array<i64: 1, 6, 32, 16>, function = "MatmulAccum", {{.*}}"(f32, VRF, row_major{{.*}})"{{.*}}schedule = ["kernel broadcast_fma"]{{.*}} : (memref<1x6x32xf32, strided<{{.*}}>>, memref<1x1x32x16xf32, strided<{{.*}}>>, vector<8xf32>, {{.*}}) -> (vector<8xf32>, {{.*}})
// KERNEL:         arith.addf %{{.*}}, %[[TILE]]#0 : vector<8xf32>

// DONE-LABEL: func.func @product
// DONE-NOT:     morello.spec
// DONE:         vector.fma
// DONE-NOT:     morello.spec
func.func @product(%a: memref<1x12x64xf32>, %b: memref<1x64x16xf32>, %c: memref<1x12x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 12, 64, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "split k by 32:",
                "  move rhs to L2 as [b, n/16, k, n%16]", "  move lhs to L2", "  move out to L2",
                "  tile m by 6:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x12x64xf32>, memref<1x64x16xf32>, memref<1x12x16xf32>) -> ()
  return
}
