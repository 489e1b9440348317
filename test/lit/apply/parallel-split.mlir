// k shared among threads: each has sums of its own, which are added up in the order of the threads' numbers.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 | FileCheck %s

// Seven trips of 6 steps and one of 2 for three threads.
// CHECK-LABEL: func.func @sums
// CHECK:         memref.alloc() {alignment = 64 : i64}
// CHECK:         call @[[S:morello_sums_4x44x16_[0-9a-f]+]]
// CHECK:       func.func private @[[S]]({{.*}}, %[[FIRST:.*]]: i1)
// CHECK:         scf.parallel (%[[T:.*]]) = (%c0) to (%c3) step (%c1) {
// CHECK-NEXT:      func.call @[[F:morello_threads_4x44x16_[0-9a-f]+]]({{.*}}, %[[T]])
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %c4 step %c1 {
// Of three threads, in order; then what was there, unless this is the first step.
// CHECK:           %[[A:.*]] = vector.load
// CHECK:           %[[B:.*]] = vector.load
// CHECK:           %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK:           %[[C:.*]] = vector.load
// CHECK:           arith.addf %[[AB]], %[[C]]
// CHECK:           scf.if %[[FIRST]]
// CHECK:           vector.store
// CHECK:       func.func private @[[F]]({{.*}}, %[[T:.*]]: index)
// The place of this thread; only its first trip stores.
// CHECK:         memref.subview %{{.*}}[%[[T]], 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK:         %[[LOW:.*]] = arith.divui
// CHECK:         %[[FROM:.*]] = arith.muli %[[LOW]], %c6
// CHECK:         scf.for %[[K:.*]] = %[[FROM]] to %{{.*}} step %c6 {
// CHECK:           %[[STORES:.*]] = arith.cmpi eq, %[[K]], %[[FROM]]
// CHECK:           func.call @morello_broadcast_fma{{.*}}, %[[STORES]])
// CHECK:         scf.if
// CHECK:           arith.cmpi eq, %c42, %[[FROM]]
func.func @sums(%a: memref<1x4x44xf32>, %b: memref<1x44x16xf32>, %c: memref<1x4x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 44, 16>, threads = 3 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = [
      "parallel split k by 6:", "    move lhs to L2", "    move rhs to L2", "    move out to L2", "    move out to L1", "    move out to VRF",
      "    kernel broadcast_fma", "rest:", "    move lhs to L2", "    move rhs to L2", "    move out to L2", "    move out to L1", "    move out to VRF",
      "    kernel broadcast_fma"]
  } : (memref<1x4x44xf32>, memref<1x44x16xf32>, memref<1x4x16xf32>) -> ()
  return
}
