// Nests that read a padded buffer read what it is made of; where others read it as well, its borders are filled.
// RUN: morello-opt %s --morello-lift | FileCheck %s

// CHECK-LABEL: func.func @unpadded
// CHECK-NOT:     memref<1x66x66x64xf32>
// CHECK:         call @morello_reduce_64x64x64x3x3_f32{{(_[0-9]+)?}}(
// CHECK-NOT:     memref<1x66x66x64xf32>
func.func @unpadded(%a: memref<1x64x64x64xf32>, %w: memref<3x3x64xf32>, %o: memref<1x64x64x64xf32>) {
  %z = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x66x66x64xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<1x66x66x64xf32>)
  %i = memref.subview %p[0, 1, 1, 0] [1, 64, 64, 64] [1, 1, 1, 1] : memref<1x66x66x64xf32> to memref<1x64x64x64xf32, strided<[278784, 4224, 64, 1], offset: 4288>>
  memref.copy %a, %i : memref<1x64x64x64xf32> to memref<1x64x64x64xf32, strided<[278784, 4224, 64, 1], offset: 4288>>
  linalg.fill ins(%z : f32) outs(%o : memref<1x64x64x64xf32>)
  linalg.depthwise_conv_2d_nhwc_hwc ins(%p, %w : memref<1x66x66x64xf32>, memref<3x3x64xf32>) outs(%o : memref<1x64x64x64xf32>)
  memref.dealloc %p : memref<1x66x66x64xf32>
  return
}

// Two nests.
// CHECK-LABEL: func.func @twice
// CHECK-NOT:     memref.alloc
// CHECK-COUNT-2: call @morello_map_10x10_f32
func.func @twice(%a: memref<8x8xf32>, %o: memref<10x10xf32>, %q: memref<10x10xf32>) {
  %z = arith.constant 1.0 : f32
  %p = memref.alloc() : memref<10x10xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<10x10xf32>)
  %i = memref.subview %p[1, 1] [8, 8] [1, 1] : memref<10x10xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  memref.copy %a, %i : memref<8x8xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  linalg.exp ins(%p : memref<10x10xf32>) outs(%o : memref<10x10xf32>)
  linalg.abs ins(%p : memref<10x10xf32>) outs(%q : memref<10x10xf32>)
  memref.dealloc %p : memref<10x10xf32>
  return
}

// A contraction reads it, too: the buffer stays, and its borders alone are filled.
// CHECK-LABEL: func.func @also_contracted
// CHECK:         memref.alloc() : memref<10x10xf32>
// CHECK:         call @morello_map_10_f32
// CHECK:         call @morello_matmul_
func.func @also_contracted(%a: memref<8x8xf32>, %o: memref<10x10xf32>, %q: memref<10x10xf32>) {
  %z = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<10x10xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<10x10xf32>)
  %i = memref.subview %p[1, 1] [8, 8] [1, 1] : memref<10x10xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  memref.copy %a, %i : memref<8x8xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  linalg.exp ins(%p : memref<10x10xf32>) outs(%o : memref<10x10xf32>)
  linalg.matmul ins(%p, %o : memref<10x10xf32>, memref<10x10xf32>) outs(%q : memref<10x10xf32>)
  memref.dealloc %p : memref<10x10xf32>
  return
}

// What is padded is written meanwhile: the buffer stays.
// CHECK-LABEL: func.func @overwritten
// CHECK:         memref.alloc() : memref<1x66x66x64xf32>
// CHECK:         call @morello_reduce_64x64x64x3x3_f32
func.func @overwritten(%a: memref<1x64x64x64xf32>, %w: memref<3x3x64xf32>, %o: memref<1x64x64x64xf32>) {
  %z = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x66x66x64xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<1x66x66x64xf32>)
  %i = memref.subview %p[0, 1, 1, 0] [1, 64, 64, 64] [1, 1, 1, 1] : memref<1x66x66x64xf32> to memref<1x64x64x64xf32, strided<[278784, 4224, 64, 1], offset: 4288>>
  memref.copy %a, %i : memref<1x64x64x64xf32> to memref<1x64x64x64xf32, strided<[278784, 4224, 64, 1], offset: 4288>>
  linalg.fill ins(%z : f32) outs(%a : memref<1x64x64x64xf32>)
  linalg.fill ins(%z : f32) outs(%o : memref<1x64x64x64xf32>)
  linalg.depthwise_conv_2d_nhwc_hwc ins(%p, %w : memref<1x66x66x64xf32>, memref<3x3x64xf32>) outs(%o : memref<1x64x64x64xf32>)
  memref.dealloc %p : memref<1x66x66x64xf32>
  return
}

// What is called may write to what is padded, a variable of the module: the buffer stays.
// CHECK-LABEL: func.func @called
// CHECK:         memref.alloc() : memref<10x10xf32>
// CHECK:         call @elsewhere
// CHECK:         call @morello_map_
memref.global "private" @variable : memref<8x8xf32>
func.func private @elsewhere()
func.func @called(%o: memref<10x10xf32>) {
  %z = arith.constant 1.0 : f32
  %a = memref.get_global @variable : memref<8x8xf32>
  %p = memref.alloc() : memref<10x10xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<10x10xf32>)
  %i = memref.subview %p[1, 1] [8, 8] [1, 1] : memref<10x10xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  memref.copy %a, %i : memref<8x8xf32> to memref<8x8xf32, strided<[10, 1], offset: 11>>
  func.call @elsewhere() : () -> ()
  linalg.exp ins(%p : memref<10x10xf32>) outs(%o : memref<10x10xf32>)
  memref.dealloc %p : memref<10x10xf32>
  return
}

// What is padded has no strides: the buffer stays.
// CHECK-LABEL: func.func @without_strides
// CHECK:         memref.alloc() : memref<200x32x32xf32>
// CHECK:         memref.copy
// CHECK:         call @morello_map_204800_f32
#pairs = affine_map<(d0, d1, d2) -> (d0 floordiv 2, d0 mod 2, d1, d2)>
func.func @without_strides(%a: memref<200x30x30xf32, #pairs>, %o: memref<200x32x32xf32>) {
  %z = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<200x32x32xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<200x32x32xf32>)
  %i = memref.subview %p[0, 1, 1] [200, 30, 30] [1, 1, 1] : memref<200x32x32xf32> to memref<200x30x30xf32, strided<[1024, 32, 1], offset: 33>>
  memref.copy %a, %i : memref<200x30x30xf32, #pairs> to memref<200x30x30xf32, strided<[1024, 32, 1], offset: 33>>
  linalg.exp ins(%p : memref<200x32x32xf32>) outs(%o : memref<200x32x32xf32>)
  memref.dealloc %p : memref<200x32x32xf32>
  return
}

// CHECK-LABEL: func.func private @morello_reduce_64x64x64x3x3_f32(
// CHECK:         border [1, 0, 0, 1, 0] from -1 of 64, border [0, 1, 0, 0, 1] from -1 of 64, else 0.0, first -4160)
