// RUN: not morello-opt %s --morello-parallel-to-pool 2>&1 | FileCheck %s
// CHECK: @morello_parallel is something else than the runtime's function

memref.global @morello_parallel : memref<4xf32>

func.func @marked() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%t) = (%c0) to (%c4) step (%c1) {
    scf.reduce
  } {morello.threads}
  return
}
