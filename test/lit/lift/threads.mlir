// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-group,morello-lift{threads=4})' --verify-diagnostics --remarks -o /dev/null
// The remark at an op says the goal that is searched for, threads and all.

func.func @product(%a: memref<64x32xf32>, %b: memref<32x48xf32>, %c: memref<64x48xf32>) {
  // expected-remark @below {{linalg.matmul lifted: MatmulAccum([1, 64, 32, 48], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), parallel 4)}}
  linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x48xf32>) outs(%c : memref<64x48xf32>)
  return
}

// A schedule by hand that says nothing of threads is for one.
func.func @by_hand(%a: memref<64x32xf32>, %b: memref<32x48xf32>, %c: memref<64x48xf32>) {
  // expected-remark @below {{linalg.matmul lifted: MatmulAccum([1, 64, 32, 48], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial)}}
  linalg.matmul {morello.schedule = ["tile m by 6:", "    ?", "rest:", "    ?"]} ins(%a, %b : memref<64x32xf32>, memref<32x48xf32>) outs(%c : memref<64x48xf32>)
  return
}

func.func @nest(%a: memref<6x5xf32>, %c: memref<6x5xf32> {morello.unaliased}) {
  // expected-remark @below {{linalg.exp lifted: Map([30], (f32, GL, [1]), (f32, GL, [1]), "y = exp(x0)", parallel 4)}}
  linalg.exp ins(%a : memref<6x5xf32>) outs(%c : memref<6x5xf32>)
  return
}
