// Zeros beyond the edges of lhs are not multiplied.
// RUN: morello-opt %s --morello-apply=target=avx2 --split-input-file | FileCheck %s

// Lines of the window are a loop whose bounds are computed from the line, pixels of it three loops: for all rows but the
// first, for all, for all but the last.
// CHECK-LABEL: func.func @lines
// CHECK:         arith.divui %{{.*}}, %c4
// CHECK:         %[[LINE:.*]] = arith.divui %{{.*}}, %c4
// CHECK:         call @morello_broadcast_fma_4x36x8_{{.*}}(%{{.*}}, %[[LINE]], %c0{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK-LABEL: func.func private @morello_broadcast_fma_4x36x8
// CHECK-SAME:    (%{{.*}}: !llvm.ptr, %[[AT:.*]]: index, %[[TAP:.*]]: index, %{{.*}}: !llvm.ptr
// CHECK:         arith.maxsi
// CHECK:         %[[FIRST:.*]] = arith.minsi
// CHECK:         arith.maxsi
// CHECK:         %[[END:.*]] = arith.minsi
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1 iter_args
// CHECK-COUNT-40:  vector.fma
// CHECK-NOT:     vector.fma
func.func @lines(%a: memref<1x2x4x3x12xf32, strided<[96, 24, 4, 24, 1]>>, %b: memref<1x36x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 36, 8>,
    operands = ["(f32, L1, row_major, m%4, k%12, lap 1:1:4:1, lap 4:12:1:1, edge m 1x4:4 k 1x12:1 in 4:20, edge m 4x2:1 k 12x3:1 in 1:3)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x2x4x3x12xf32, strided<[96, 24, 4, 24, 1]>>, memref<1x36x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// Tiles that are parts of lines know their line, not the place in it.
// CHECK-LABEL: func.func @parts
// CHECK-LABEL: func.func private @morello_broadcast_fma_2x36x8
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 iter_args
// CHECK:           scf.for %{{.*}} = %c0 to %c12
func.func @parts(%a: memref<1x2x4x3x12xf32, strided<[96, 24, 4, 24, 1]>>, %b: memref<1x36x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 36, 8>,
    operands = ["(f32, L1, row_major, m%4, k%12, lap 1:1:4:1, lap 4:12:1:1, edge m 1x4:4 k 1x12:1 in 4:20, edge m 4x2:1 k 12x3:1 in 1:3)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "    tile m by 2:", "        move out to VRF", "        kernel broadcast_fma"]
  } : (memref<1x2x4x3x12xf32, strided<[96, 24, 4, 24, 1]>>, memref<1x36x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
