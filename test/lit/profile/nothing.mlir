// Where nothing can be entered, nothing is counted.
// RUN: morello-opt %s --morello-profile | FileCheck %s

// CHECK-NOT: morello_profile
// CHECK-NOT: call_intrinsic
func.func private @f(%x: memref<8xf32>, %y: memref<8xf32>) {
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
