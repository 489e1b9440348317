// Operands with a window: line by line, in place, and packed.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// A tile of two lines is two of their digit; inside of one there is none.
// CHECK-LABEL: func.func @in_place
// CHECK:         scf.for
// CHECK:           memref.subview %{{.*}}[0, %{{.*}}, 0, 0, 0] [1, 1, 4, 3, 12] [1, 1, 1, 1, 1] : memref<1x2x4x3x12xf32, {{.*}}> to memref<1x4x3x12xf32
func.func @in_place(%a: memref<1x2x4x3x12xf32, strided<[100, 24, 4, 24, 1]>>, %b: memref<1x36x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 36, 8>,
    operands = ["(f32, L1, row_major, m%4, k%12, lap 1:1:4:1, lap 4:12:1:1)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x2x4x3x12xf32, strided<[100, 24, 4, 24, 1]>>, memref<1x36x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// Panels go across lines: eight neighbours from place 4 of a line of eight on are of two lines.
// CHECK-LABEL: func.func @packed
// CHECK:         scf.for
// CHECK:           vector.load
// CHECK:           vector.store
// CHECK:           vector.load {{.*}}, vector<4xf32>
// CHECK:           vector.load {{.*}}, vector<4xf32>
// CHECK:           vector.shuffle
func.func @packed(%a: memref<1x4x4xf32>, %b: memref<1x4x4x8xf32, strided<[100, 40, 12, 1]>>, %c: memref<1x4x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 4, 32>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, s16, n%8)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/12, k, n%12]", "move lhs to L2", "move out to L2", "tile n by 12:", "    kernel scalar", "rest:", "    kernel scalar"]
  } : (memref<1x4x4xf32>, memref<1x4x4x8xf32, strided<[100, 40, 12, 1]>>, memref<1x4x32xf32>) -> ()
  return
}

// Exchanged, elements of the image are broadcast in place, and columns of the tile are stored as rows.
// CHECK-LABEL: func.func private @morello_broadcast_fma_4x4x8
// CHECK-COUNT-4:   vector.broadcast
// CHECK:           vector.shuffle
// CHECK-COUNT-8:   vector.store
func.func @exchanged(%a: memref<1x8x4xf32>, %b: memref<1x4x2x4xf32, strided<[100, 40, 12, 1]>>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 4, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, s16, n%4)", "(f32, GL, row_major)"], serial,
    schedule = ["exchange", "to_accum", "move rhs to L2 as [b, n/16, k, n%16]", "move lhs to L2", "move out to L2", "tile m by 4:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x8x4xf32>, memref<1x4x2x4xf32, strided<[100, 40, 12, 1]>>, memref<1x8x8xf32>) -> ()
  return
}

// Accumulators go through the lines of the window, twelve steps each.
// CHECK-LABEL: func.func private @morello_broadcast_fma_4x36x8
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args
// CHECK-NEXT:      arith.muli
// CHECK:           scf.for %{{.*}} = %c0 to %c12 step %c4 iter_args
// CHECK-COUNT-16:    vector.fma
