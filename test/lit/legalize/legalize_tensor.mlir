// RUN: morello-opt %s --morello-legalize-tensor | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: attributes {morello.had_tensors}
// CHECK-NOT: linalg.softmax
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.divf
func.func @softmax(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<3x5xf32>) outs(%y : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @softmax_on_memrefs
// CHECK: bufferization.to_tensor
// CHECK-NOT: linalg.softmax
// CHECK: bufferization.materialize_in_destination {{.*}} in writable
func.func @softmax_on_memrefs(%x: memref<3x?xf32>, %y: memref<3x?xf32>) {
  linalg.softmax dimension(0) ins(%x : memref<3x?xf32>) outs(%y : memref<3x?xf32>)
  return
}

// CHECK-LABEL: func.func @pack
// CHECK: tensor.pad
// CHECK: tensor.expand_shape
// CHECK: linalg.transpose
// CHECK: tensor.collapse_shape
func.func @pack(%x: tensor<5x6xf32>, %p: f32, %e: tensor<3x3x2x2xf32>, %y: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %r = linalg.pack %x padding_value(%p : f32) inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %e
    : tensor<5x6xf32> -> tensor<3x3x2x2xf32>
  %s = linalg.unpack %r inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %y : tensor<3x3x2x2xf32> -> tensor<5x6xf32>
  return %s : tensor<5x6xf32>
}

// A grouped op is morello-lift's.
// CHECK-LABEL: func.func @grouped
// CHECK: linalg.softmax {{.*}}morello.group
func.func @grouped(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = linalg.softmax {morello.group = 1 : i64} dimension(1) ins(%x : tensor<3x5xf32>) outs(%y : tensor<3x5xf32>)
    -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}
