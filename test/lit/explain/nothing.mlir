// A module of which nothing is lifted: why not, whatever was asked for.
// RUN: morello explain %s --target avx2 | FileCheck %s
// RUN: morello explain %s --target avx2 --shares 2>&1 >%t.out | FileCheck %s
// RUN: FileCheck %s --check-prefix=SHARES <%t.out
// RUN: morello explain %s --target avx2 --plain 2>&1 >%t.out | FileCheck %s

// CHECK: nothing was lifted:
// CHECK-NEXT: nothing.mlir:12:3: remark: linalg.matmul not lifted: the first input has dynamic sizes (memref<?x8xf32>)

// SHARES: left to upstream: 1 linalg.matmul
func.func @f(%a: memref<?x8xf32>, %b: memref<8x8xf32>, %c: memref<?x8xf32>) {
  linalg.matmul ins(%a, %b : memref<?x8xf32>, memref<8x8xf32>) outs(%c : memref<?x8xf32>)
  return
}
