// Marked loops become calls of the pool with a function and a context; others stay.
// RUN: morello-opt %s --morello-parallel-to-pool | FileCheck %s
// What comes of it is LLVM IR.
// RUN: morello-opt %s --morello-parallel-to-pool --morello-lower-upstream | FileCheck %s --check-prefix=LOWERED
// LOWERED: llvm.call @morello_parallel({{.*}}) : (!llvm.ptr, !llvm.ptr, i64) -> ()

func.func private @work(memref<f32>, index, i1, f32, i32)

// CHECK-LABEL: func.func @marked
// CHECK:         %[[ROOM:.*]] = memref.alloca() : memref<3xi64>
// CHECK:         scf.for
// CHECK-COUNT-3:   memref.store %{{.*}}, %[[ROOM]]
// CHECK:           constant @morello_fork_0
// CHECK:           call @morello_parallel
// CHECK-NOT:     scf.parallel
func.func @marked(%m: memref<f32>, %flag: i1, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %seven = arith.constant 7 : i32
  scf.for %i = %c0 to %c4 step %c1 {
    scf.parallel (%t) = (%c0) to (%c4) step (%c1) {
      func.call @work(%m, %t, %flag, %x, %seven) : (memref<f32>, index, i1, f32, i32) -> ()
      scf.reduce
    } {morello.threads}
  }
  return
}

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: scf.parallel
// CHECK-NOT:     call @morello_parallel
// CHECK-LABEL: func.func private @morello_parallel(!llvm.ptr, !llvm.ptr, i64)

// CHECK-LABEL: func.func private @morello_fork_0(
// CHECK-SAME:    %[[CONTEXT:.*]]: !llvm.ptr, %[[TRIP:.*]]: i64)
// CHECK-DAG:     %[[C7:.*]] = arith.constant 7 : i32
// CHECK-DAG:     llvm.getelementptr %[[CONTEXT]][0]
// CHECK-DAG:     llvm.getelementptr %[[CONTEXT]][2]
// CHECK-DAG:     builtin.unrealized_conversion_cast {{.*}} : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-DAG:     arith.trunci %{{.*}} : i64 to i1
// CHECK:         %[[T:.*]] = arith.index_cast %[[TRIP]] : i64 to index
// CHECK:         call @work(%{{.*}}, %[[T]], %{{.*}}, %{{.*}}, %[[C7]])
// CHECK:         return
func.func @others(%m: memref<4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // Not marked.
  scf.parallel (%t) = (%c0) to (%c4) step (%c1) {
    scf.reduce
  }
  // A memref with sizes.
  scf.parallel (%t) = (%c0) to (%c4) step (%c1) {
    memref.store %x, %m[%t] : memref<4xf32>
    scf.reduce
  } {morello.threads}
  // Not from zero.
  scf.parallel (%t) = (%c1) to (%c4) step (%c1) {
    scf.reduce
  } {morello.threads}
  return
}
