// Around an image there are zeros: the Spec says where it ends, where filters are finite constants.
// RUN: morello-opt %s --morello-lift=nests=false --split-input-file | FileCheck %s

// The borders of the buffer are filled.
// CHECK-LABEL:   func.func @same
// CHECK-COUNT-4: linalg.fill
// CHECK:         memref.copy
// CHECK-NOT:     morello.border
// CHECK:         "morello.spec"
// CHECK-SAME:    edge m 1x7:4 k 1x12:1 in 4:32, edge m 7x5:1 k 12x3:1 in 1:6
memref.global "private" constant @w : memref<3x3x4x8xf32> = dense<1.0>
func.func @same(%a: memref<1x5x7x4xf32>, %c: memref<1x5x7x8xf32>) {
  %z = arith.constant 0.0 : f32
  %w = memref.get_global @w : memref<3x3x4x8xf32>
  %p = memref.alloc() : memref<1x7x9x4xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<1x7x9x4xf32>)
  %i = memref.subview %p[0, 1, 1, 0] [1, 5, 7, 4] [1, 1, 1, 1] : memref<1x7x9x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  memref.copy %a, %i : memref<1x5x7x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  linalg.conv_2d_nhwc_hwcf ins(%p, %w : memref<1x7x9x4xf32>, memref<3x3x4x8xf32>) outs(%c : memref<1x5x7x8xf32>)
  return
}

// -----

// An infinity among the filters: times zero it is NaN.
// CHECK-LABEL: func.func @infinite
// CHECK:       "morello.spec"
// CHECK-NOT:   edge
memref.global "private" constant @w : memref<3x3x4x8xf32> = dense<0x7F800000>
func.func @infinite(%a: memref<1x5x7x4xf32>, %c: memref<1x5x7x8xf32>) {
  %z = arith.constant 0.0 : f32
  %w = memref.get_global @w : memref<3x3x4x8xf32>
  %p = memref.alloc() : memref<1x7x9x4xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<1x7x9x4xf32>)
  %i = memref.subview %p[0, 1, 1, 0] [1, 5, 7, 4] [1, 1, 1, 1] : memref<1x7x9x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  memref.copy %a, %i : memref<1x5x7x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  linalg.conv_2d_nhwc_hwcf ins(%p, %w : memref<1x7x9x4xf32>, memref<3x3x4x8xf32>) outs(%c : memref<1x5x7x8xf32>)
  return
}

// -----

// Nor with filters that are arguments.
// CHECK-LABEL: func.func @unknown
// CHECK:       "morello.spec"
// CHECK-NOT:   edge
func.func @unknown(%a: memref<1x5x7x4xf32>, %w: memref<3x3x4x8xf32>, %c: memref<1x5x7x8xf32>) {
  %z = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x7x9x4xf32>
  linalg.fill ins(%z : f32) outs(%p : memref<1x7x9x4xf32>)
  %i = memref.subview %p[0, 1, 1, 0] [1, 5, 7, 4] [1, 1, 1, 1] : memref<1x7x9x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  memref.copy %a, %i : memref<1x5x7x4xf32> to memref<1x5x7x4xf32, strided<[252, 36, 4, 1], offset: 40>>
  linalg.conv_2d_nhwc_hwcf ins(%p, %w : memref<1x7x9x4xf32>, memref<3x3x4x8xf32>) outs(%c : memref<1x5x7x8xf32>)
  return
}
