// Convolutions are products: of the input, seen through a window, with the filters.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// Rows are positions along h and w, columns the window: lines of three pixels of four channels, one after the other in
// memory. The memref has a dim for every digit: lines and positions, lines of the window and their elements.
// CHECK-LABEL: func.func private @morello_matmul_accum_1x35x36x8_f32
// CHECK:       memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, 5, 7, 3, 12], strides: [140, 36, 4, 36, 1]
// CHECK:       "morello.spec"
// CHECK-SAME:  dims = array<i64: 1, 35, 36, 8>
// CHECK-SAME:  "(f32, GL, row_major, m%7, k%12, lap 1:1:4:1, lap 7:12:1:1)", "(f32, GL, row_major)", "(f32, GL, row_major)"
func.func @nhwc(%a: memref<1x7x9x4xf32>, %b: memref<3x3x4x8xf32>, %c: memref<1x5x7x8xf32>) {
  linalg.conv_2d_nhwc_hwcf ins(%a, %b : memref<1x7x9x4xf32>, memref<3x3x4x8xf32>) outs(%c : memref<1x5x7x8xf32>)
  return
}

// -----

// With channels first the product is transposed, and the images are a batch.
// CHECK: "morello.spec"
// CHECK-SAME:  dims = array<i64: 2, 8, 36, 35>
// CHECK-SAME:  "(f32, GL, row_major)", "(f32, GL, row_major, k%9%3, n%7, lap 1:1:1:1, lap 3:7:1:1)", "(f32, GL, row_major)"
func.func @nchw(%a: memref<2x4x7x9xf32>, %b: memref<8x4x3x3xf32>, %c: memref<2x8x5x7xf32>) {
  linalg.conv_2d_nchw_fchw ins(%a, %b : memref<2x4x7x9xf32>, memref<8x4x3x3xf32>) outs(%c : memref<2x8x5x7xf32>)
  return
}

// -----

// Windows of one pixel at every position are no windows.
// CHECK: "morello.spec"
// CHECK-SAME:  dims = array<i64: 1, 63, 4, 8>
// CHECK-SAME:  "(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"
func.func @pixel(%a: memref<1x7x9x4xf32>, %b: memref<1x1x4x8xf32>, %c: memref<1x7x9x8xf32>) {
  linalg.conv_2d_nhwc_hwcf ins(%a, %b : memref<1x7x9x4xf32>, memref<1x1x4x8xf32>) outs(%c : memref<1x7x9x8xf32>)
  return
}

// -----

// Any op with such maps is one.
// CHECK: "morello.spec"
// CHECK-SAME:  dims = array<i64: 1, 5, 12, 8>
// CHECK-SAME:  "(f32, GL, row_major, s32, lap 1:1:8:1)"
#in = affine_map<(w, f, j, c) -> (w * 2 + j, c)>
#filter = affine_map<(w, f, j, c) -> (j, c, f)>
#out = affine_map<(w, f, j, c) -> (w, f)>
func.func @generic(%a: memref<11x4xf32>, %b: memref<3x4x8xf32>, %c: memref<5x8xf32>) {
  linalg.generic {indexing_maps = [#in, #filter, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%a, %b : memref<11x4xf32>, memref<3x4x8xf32>) outs(%c : memref<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}
