// RUN: morello-opt %s --morello-search=target=avx2 --morello-apply=target=avx2 | FileCheck %s
// RUN: not morello-opt %s --pass-pipeline='builtin.module(morello-apply{target=avx2})' 2>&1 | FileCheck %s --check-prefix=HOLE

// HOLE: the schedule has holes: run morello-search before

// Threads run a function for their share of the batch; the rhs of the first stage is packed once for all tiles of m, and
// t0 is a tile in scratch, with rows that are whole lines.
// CHECK-LABEL: func.func @f(
// CHECK: %[[ROOM:.*]] = memref.alloc() {alignment = 64 : i64}
// CHECK: scf.parallel
// CHECK: func.call @morello_chain_
// CHECK: morello.threads
// CHECK: memref.dealloc %[[ROOM]]
// CHECK: func.func private @morello_chain_
// CHECK-SAME: noinline
// CHECK: memref.view {{.*}} to memref<1x2x6x8xf32>
// CHECK: scf.for %{{.*}} step %c2
// CHECK: memref.view {{.*}} to memref<1x2x16xf32>
// CHECK: call @morello_broadcast_fma_2x{{.*}}x8
// CHECK: call @morello_broadcast_fma_2x5x5_
// The remainder is one row.
// CHECK: memref.view {{.*}} to memref<1x1x16xf32>
func.func @f(%a: memref<3x5x5xf32>, %b: memref<3x5x13xf32>, %c: memref<3x13x4xf32>, %o: memref<3x5x4xf32>) {
  "morello.chain4"(%a, %b, %c, %o) {
    function = "Chain", dims = array<i64: 3, 5>, threads = 2 : i64,
    stages = ["t0 = Matmul([3, 5, 5, 13], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([3, 5, 13, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x2"],
    schedule = ["parallel tile b by 1:",
                "    pack rhs of stage 1 to L2 as [b, n/8, k, n%8]",
                "    tile m by 2:",
                "        bufferize t0 to L2",
                "        stage 1:",
                "            ?",
                "        stage 2:",
                "            ?",
                "    rest:",
                "        ?"]
  } : (memref<3x5x5xf32>, memref<3x5x13xf32>, memref<3x13x4xf32>, memref<3x5x4xf32>) -> ()
  return
}
