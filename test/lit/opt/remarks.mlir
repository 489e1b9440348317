// Remarks are shown on request, and can always be expected.
// RUN: morello-opt %s --morello-group --morello-lift --remarks -o /dev/null 2>&1 | FileCheck %s
// RUN: morello-opt %s --morello-group --morello-lift -o /dev/null 2>&1 | count 0
// RUN: morello-opt %s --morello-group --morello-lift --verify-diagnostics

func.func @f(%a: memref<4x8xi32>, %b: memref<8x16xi32>, %c: memref<4x16xi32>) {
  // CHECK: remarks.mlir:[[#@LINE+3]]:3: remark: {{.*}}i32
  // CHECK-NEXT: linalg.matmul
  // expected-remark @+1 {{i32}}
  linalg.matmul ins(%a, %b : memref<4x8xi32>, memref<8x16xi32>) outs(%c : memref<4x16xi32>)
  return
}
