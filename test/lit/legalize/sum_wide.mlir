// RUN: morello-opt %s --morello-sum-wide | FileCheck %s

// CHECK-LABEL: func.func @bf16
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<4x6xf32>
// CHECK: linalg.generic {{.*}} ins(%arg2 : memref<4x6xbf16>) outs(%[[SUMS]] : memref<4x6xf32>)
// CHECK: arith.extf
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}}) outs(%[[SUMS]] : memref<4x6xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]] : memref<4x6xf32>) outs(%arg2 : memref<4x6xbf16>)
// CHECK: arith.truncf
// CHECK: memref.dealloc %[[SUMS]]
func.func @bf16(%a: memref<4x5xbf16>, %b: memref<5x6xbf16>, %c: memref<4x6xbf16>) {
  linalg.matmul ins(%a, %b : memref<4x5xbf16>, memref<5x6xbf16>) outs(%c : memref<4x6xbf16>)
  return
}

// Wide outputs, and dynamic sizes, stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT: memref.alloc
// CHECK: linalg.matmul
// CHECK: linalg.matmul
func.func @others(%a: memref<4x5xbf16>, %b: memref<5x6xbf16>, %c: memref<4x6xf32>, %d: memref<?x5xbf16>, %e: memref<?x6xbf16>) {
  linalg.matmul ins(%a, %b : memref<4x5xbf16>, memref<5x6xbf16>) outs(%c : memref<4x6xf32>)
  linalg.matmul ins(%d, %b : memref<?x5xbf16>, memref<5x6xbf16>) outs(%e : memref<?x6xbf16>)
  return
}
