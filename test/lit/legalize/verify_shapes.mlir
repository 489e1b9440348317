// RUN: morello-opt %s --morello-verify-shapes | FileCheck %s

// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert
// CHECK: linalg.add
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
// CHECK-LABEL: func.func @static
// CHECK-NOT: cf.assert
func.func @static(%x: memref<4xf32>, %y: memref<4xf32>, %i: index) -> f32 {
  linalg.add ins(%x, %y : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
  %v = memref.load %y[%i] : memref<4xf32>
  return %v : f32
}
