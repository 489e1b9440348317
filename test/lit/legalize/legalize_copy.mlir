// RUN: morello-opt %s --morello-legalize-copy | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %z: memref<4x4xf32, strided<[8, 1]>>) {
  // CHECK: memref.copy
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32>
  // CHECK: linalg.copy {{.*}}ins(%{{.*}} : memref<4x4xf32>) outs(%{{.*}} : memref<4x4xf32, strided<[8, 1]>>)
  memref.copy %x, %z : memref<4x4xf32> to memref<4x4xf32, strided<[8, 1]>>
  return
}
