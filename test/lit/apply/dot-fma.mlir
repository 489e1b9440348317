// Dot products: vectors along k, enough accumulators to cover the latency, a masked end, horizontal sums.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// One dot product: eight accumulators.
// CHECK-LABEL: func.func @one
// CHECK:         scf.for %{{.*}} = %c0 to %c128 step %c64 iter_args
// CHECK-COUNT-8:   vector.fma
// CHECK:           scf.yield
// CHECK:         vector.maskedload
// CHECK:         vector.fma
// CHECK-COUNT-7: arith.addf {{.*}} : vector<8xf32>
// CHECK:         arith.addf {{.*}} : vector<4xf32>
// CHECK:         arith.addf {{.*}} : vector<2xf32>
// CHECK:         arith.addf {{.*}} : vector<1xf32>
// CHECK:         vector.extract
// CHECK:         memref.load
// CHECK:         arith.addf {{.*}} : f32
// CHECK:         memref.store
func.func @one(%a: memref<1x1x133xf32>, %b: memref<1x133x1xf32, strided<[133, 1, 133]>>, %c: memref<1x1x1xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 133, 1>,
    operands = ["(f32, L1, row_major)", "(f32, L1, col_major)", "(f32, L1, row_major)"], serial,
    schedule = ["kernel dot_fma"]
  } : (memref<1x1x133xf32>, memref<1x133x1xf32, strided<[133, 1, 133]>>, memref<1x1x1xf32>) -> ()
  return
}

// Four: two accumulators each. Every vector of lhs and rhs is loaded once. Their lanes are summed up together, and a row of
// the output is one vector.
// CHECK-LABEL: func.func @four
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c16 iter_args
// CHECK-COUNT-4:   vector.load
// CHECK-NOT:       vector.load
// CHECK-COUNT-4:   vector.fma
// CHECK:           scf.yield
// CHECK-COUNT-4: arith.addf {{.*}} : vector<8xf32>
// CHECK-COUNT-4: vector.shuffle
// CHECK:         vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK:         vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
// CHECK:         vector.load {{.*}}vector<2xf32>
// CHECK:         vector.store {{.*}}vector<2xf32>
// CHECK:         vector.extract_strided_slice {{.*}} {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
// CHECK:         vector.store {{.*}}vector<2xf32>
func.func @four(%a: memref<1x2x32xf32>, %b: memref<1x32x2xf32, strided<[64, 1, 32]>>, %c: memref<1x2x2xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 32, 2>,
    operands = ["(f32, L1, row_major)", "(f32, L1, col_major)", "(f32, L1, row_major)"], serial,
    schedule = ["kernel dot_fma"]
  } : (memref<1x2x32xf32>, memref<1x32x2xf32, strided<[64, 1, 32]>>, memref<1x2x2xf32>) -> ()
  return
}

// Tiles of rows ask for the rows of the next tile, one line each in a step.
// CHECK-LABEL: func.func private @morello_dot_fma_3x64x4
// CHECK:         scf.for %[[K:[^ ]*]] =
// CHECK-COUNT-12:  vector.fma
// CHECK:           %[[NEXT:.*]] = arith.addi %[[K]], %c192
// CHECK:           memref.prefetch %{{.*}}[%[[NEXT]]], read, locality<2>, data
// CHECK:           arith.addi %[[NEXT]], %c64
// CHECK-COUNT-2:   memref.prefetch
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func @rows(%a: memref<1x6x64xf32>, %b: memref<1x64x4xf32, strided<[256, 1, 64]>>, %c: memref<1x6x4xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 6, 64, 4>,
    operands = ["(f32, L1, row_major)", "(f32, L1, col_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 3:", "  kernel dot_fma"]
  } : (memref<1x6x64xf32>, memref<1x64x4xf32, strided<[256, 1, 64]>>, memref<1x6x4xf32>) -> ()
  return
}
