// Large padded buffers: a nest that alone reads one reads it in parts; else their borders are filled.
// RUN: morello-opt %s --morello-lift | FileCheck %s

// CHECK-LABEL: func.func @in_parts
// CHECK-NOT:     memref<1x66x66x64xf32>
// CHECK:         memref.alloc() {{.*}} : memref<1x{{[0-9]+}}x66x64xf32>
// CHECK-COUNT-4: call @morello_reduce_{{[0-9]+}}x64x64x3x3_f32
// CHECK:         memref.dealloc
func.func @in_parts(%a: memref<1x64x64x64xf32>, %w: memref<3x3x64xf32>, %o: memref<1x64x64x64xf32>) {
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
