// RUN: morello-run %s --no-morello --check --seed 3 | FileCheck %s
// RUN: morello-run %s --no-morello --check --args ones --json | FileCheck %s --check-prefix=JSON
// RUN: morello-run %s --no-morello --emit mlir | FileCheck %s --check-prefix=MLIR
// RUN: morello-run %s --no-morello --emit llvm | FileCheck %s --check-prefix=IR

// CHECK: lifted 0 linalg ops, left 2 to upstream
// CHECK: check: right
// JSON-DAG: "ok": true
// JSON-DAG: "left": 2
// MLIR: linalg.matmul
// IR: define void @morello.call(ptr
func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %m: memref<?xi1>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %a, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %b, %c1 : tensor<?x?xf32>
  %true = arith.constant true
  memref.store %true, %m[%c0] : memref<?xi1>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
