// Sums of loops that make no window that we have anything for.
// RUN: morello-opt %s --morello-lift=nests=false --split-input-file --verify-diagnostics | FileCheck %s
// CHECK-NOT: morello

func.func @depthwise(%a: memref<1x7x9x4xf32>, %b: memref<3x3x4xf32>, %c: memref<1x5x7x4xf32>) {
  // expected-remark @below {{a window slides through the first input, and no loop of the other one shares it}}
  linalg.depthwise_conv_2d_nhwc_hwc ins(%a, %b : memref<1x7x9x4xf32>, memref<3x3x4xf32>) outs(%c : memref<1x5x7x4xf32>)
  return
}

// -----

func.func @both(%a: memref<7x4xf32>, %b: memref<9x3x4xf32>, %c: memref<5x5xf32>) {
  // expected-remark @below {{windows slide through both inputs}}
  linalg.generic {indexing_maps = [affine_map<(i, j, k, c) -> (i + k, c)>, affine_map<(i, j, k, c) -> (j * 2, k, c)>, affine_map<(i, j, k, c) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%a, %b : memref<7x4xf32>, memref<9x3x4xf32>) outs(%c : memref<5x5xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @scattered(%a: memref<5x3xf32>, %b: memref<3x4xf32>, %c: memref<7x4xf32>) {
  // expected-remark @below {{the output is indexed by a sum}}
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i + j, k)>], iterator_types = ["parallel", "reduction", "parallel"]}
    ins(%a, %b : memref<5x3xf32>, memref<3x4xf32>) outs(%c : memref<7x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @not_a_sum(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<8x4xf32>) {
  // expected-remark @below {{the first input is indexed by d0 floordiv 2}}
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i floordiv 2, j)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, k)>], iterator_types = ["parallel", "reduction", "parallel"]}
    ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<8x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

// A line of the output starts where the input is: what is written early is read later.
func.func @overlap(%a: memref<100xf32>, %b: memref<3x4x4xf32>) {
  %in = memref.reinterpret_cast %a to offset: [0], sizes: [1, 9, 4], strides: [36, 4, 1] : memref<100xf32> to memref<1x9x4xf32, strided<[36, 4, 1]>>
  %out = memref.reinterpret_cast %a to offset: [20], sizes: [1, 7, 4], strides: [28, 4, 1] : memref<100xf32> to memref<1x7x4xf32, strided<[28, 4, 1], offset: 20>>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.conv_1d_nwc_wcf ins(%in, %b : memref<1x9x4xf32, strided<[36, 4, 1]>>, memref<3x4x4xf32>) outs(%out : memref<1x7x4xf32, strided<[28, 4, 1], offset: 20>>)
  return
}
