// Goals of two threads: the search shares out what is large enough, and gives the rest to one thread.
// RUN: morello-opt %s --morello-lift=threads=2 --morello-search=target=avx2 | FileCheck %s
// RUN: morello-opt %s --morello-lift --morello-search=target=avx2 | FileCheck %s --check-prefix=ONE
// RUN: morello-run %s --target=avx2 --threads=2 --entry=large --check | FileCheck %s --check-prefix=EXEC

// CHECK-LABEL: func.func private @morello_matmul_accum_1x8x8x8_f32
// CHECK:         "morello.spec"
// CHECK-SAME:      schedule = ["serial",
// CHECK-SAME:      threads = 2 : i64
// CHECK-LABEL: func.func private @morello_matmul_accum_1x128x64x128_f32
// CHECK:         "morello.spec"
// CHECK-SAME:      schedule = [{{.*}}"parallel tile {{[mn]}} by 64:"
// CHECK-SAME:      threads = 2 : i64
// A schedule by hand that says nothing of threads is for one.
// CHECK-LABEL: func.func private @morello_matmul_accum_1x8x8x16_f32
// CHECK:         "morello.spec"
// CHECK-SAME:      serial

// ONE-NOT: threads =

// EXEC: lifted 1 linalg ops
// EXEC: parallel 2)
// EXEC: check: right

func.func @small(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  return
}

func.func @large(%a: memref<128x64xf32>, %b: memref<64x128xf32>, %c: memref<128x128xf32>) {
  linalg.matmul ins(%a, %b : memref<128x64xf32>, memref<64x128xf32>) outs(%c : memref<128x128xf32>)
  return
}

func.func @by_hand(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) {
  linalg.matmul {morello.schedule = ["split k by 4:", "    ?"]} ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return
}
