// Threads: an scf.parallel whose trips are the threads' shares, each a call of one function with the number of the thread.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 | FileCheck %s
// What upstream makes of it runs in one thread.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 --morello-lower-upstream | FileCheck %s --check-prefix=SERIAL
// SERIAL-NOT: morello_parallel

// Seven trips of 6 rows and one of 2 for three threads; each has scratch of its own (6 x 8 panels of 4 rows and a spare one).
// CHECK-LABEL: func.func @rows
// CHECK:         %[[ROOM:.*]] = memref.alloc() {alignment = 64 : i64} : memref<[[#]]xi8>
// CHECK:         scf.parallel (%[[T:.*]]) = (%c0) to (%c3) step (%c1) {
// CHECK-NEXT:      func.call @[[F:morello_threads_44x8x16_[0-9a-f]+]]({{.*}}, %[[T]])
// CHECK-NEXT:      scf.reduce
// CHECK-NEXT:    } {morello.threads}
// CHECK:       func.func private @[[F]]({{.*}}, %[[FIRST:.*]]: i1, %[[T:.*]]: index)
// The trips of this thread, T * 8 / 3 to (T + 1) * 8 / 3.
// CHECK:         memref.view
// CHECK:         %[[NEXT:.*]] = arith.addi %[[T]], %c1
// CHECK:         %[[A:.*]] = arith.muli %[[T]], %c8
// CHECK:         %[[LOW:.*]] = arith.divui %[[A]], %c3
// CHECK:         %[[B:.*]] = arith.muli %[[NEXT]], %c8
// CHECK:         %[[HIGH:.*]] = arith.divui %[[B]], %c3
// CHECK:         %[[FROM:.*]] = arith.muli %[[LOW]], %c6
// CHECK:         %[[TO:.*]] = arith.muli %[[HIGH]], %c6
// CHECK:         %[[END:.*]] = arith.minui %[[TO]], %c42
// CHECK:         scf.for %{{.*}} = %[[FROM]] to %[[END]] step %c6 {
// CHECK:         }
// CHECK:         %[[LAST:.*]] = arith.cmpi eq, %[[HIGH]], %c8
// CHECK:         scf.if %[[LAST]] {
func.func @rows(%a: memref<1x44x8xf32>, %b: memref<1x8x16xf32>, %c: memref<1x44x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 44, 8, 16>, threads = 3 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = [
      "parallel tile m by 6:", "    move lhs to L2 as [b, m/6, k, m%6]", "    move rhs to L2", "    move out to L2",
      "    move out to L1", "    move out to VRF", "    kernel broadcast_fma",
      "rest:", "    move lhs to L2", "    move rhs to L2", "    move out to L2", "    move out to L1", "    move out to VRF",
      "    kernel broadcast_fma"]
  } : (memref<1x44x8xf32>, memref<1x8x16xf32>, memref<1x44x16xf32>) -> ()
  return
}

// -----

// Two dims under one fork: two groups of two threads. What they share is packed by all four, a panel each.
// CHECK-LABEL: func.func @both
// CHECK:         scf.parallel (%[[T:.*]]) = (%c0) to (%c4) step (%c1) {
// CHECK-NEXT:      func.call @[[PACK:morello_pack_12x8x64_[0-9a-f]+]]({{.*}}, %[[T]])
// CHECK:         scf.parallel (%[[T:.*]]) = (%c0) to (%c4) step (%c1) {
// CHECK-NEXT:      func.call @[[F:morello_threads_12x8x64_[0-9a-f]+]]({{.*}}, %[[T]])
// CHECK-NOT:     scf.parallel
// CHECK:       func.func private @[[F]]({{.*}}, %[[T:.*]]: index)
// CHECK:         %[[LEAD:.*]] = arith.divui %[[T]], %c2
// CHECK:         %[[MEMBER:.*]] = arith.remui %[[T]], %c2
// CHECK:         arith.addi %[[LEAD]], %c1
// CHECK:         scf.for
// CHECK:           arith.addi %[[MEMBER]], %c1
// CHECK:           scf.for
// CHECK-NOT:   scf.parallel
func.func @both(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 4 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = [
      "move rhs to GL as [b, n/16, k, n%16]", "parallel tile m by 6 over 2:", "    parallel tile n by 16:",
      "        move lhs to L2", "        move rhs to L2", "        move out to L2",
      "        move out to L1", "        move out to VRF",
      "        kernel broadcast_fma"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}
