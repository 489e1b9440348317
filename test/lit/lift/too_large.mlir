// What would take more than hours is no Spec: the search could not count its cost.
// RUN: morello-opt %s --morello-lift --verify-diagnostics

func.func @large(%a: memref<1000000x1000000xf32>, %c: memref<1000000x1000000xf32>) {
  // expected-remark @below {{linalg.matmul not lifted: MatmulAccum: [1, 1000000, 1000000, 1000000] is too large}}
  linalg.matmul ins(%a, %a : memref<1000000x1000000xf32>, memref<1000000x1000000xf32>)
    outs(%c : memref<1000000x1000000xf32>)
  return
}
