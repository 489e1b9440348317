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

// What is empty adds nothing to a concatenation; its padding is all there is.
// CHECK-LABEL: func.func @empty_parts
// CHECK-SAME: (%[[X:.*]]: tensor<2x0xf32>, %[[Y:.*]]: tensor<2x3xf32>)
// CHECK: tensor.generate
// CHECK-NEXT: ^bb0
// CHECK-NEXT: tensor.yield
// CHECK: tensor.concat dim(1) %[[Y]], %[[Y]] :
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<4x0xf32>
// CHECK: return {{.*}}, %[[Y]], {{.*}}, %[[NONE]]
func.func @empty_parts(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>)
    -> (tensor<4x2xf32>, tensor<2x3xf32>, tensor<2x6xf32>, tensor<4x0xf32>) {
  %c = arith.constant 1.0 : f32
  %p = tensor.pad %x low[2, 2] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<2x0xf32> to tensor<4x2xf32>
  %q = tensor.concat dim(1) %y, %x : (tensor<2x3xf32>, tensor<2x0xf32>) -> tensor<2x3xf32>
  %r = tensor.concat dim(1) %y, %x, %y : (tensor<2x3xf32>, tensor<2x0xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %s = tensor.concat dim(0) %x, %x : (tensor<2x0xf32>, tensor<2x0xf32>) -> tensor<4x0xf32>
  return %p, %q, %r, %s : tensor<4x2xf32>, tensor<2x3xf32>, tensor<2x6xf32>, tensor<4x0xf32>
}

// Nor where casts hide that it is empty, as those of torch.roll by nothing.
// CHECK-LABEL: func.func @hidden_empty_part
// CHECK-SAME: (%[[X:.*]]: tensor<0x9xf32>, %[[Y:.*]]: tensor<1x9xf32>)
// CHECK-NOT: tensor.concat
// CHECK: return %[[Y]]
func.func @hidden_empty_part(%x: tensor<0x9xf32>, %y: tensor<1x9xf32>) -> tensor<1x9xf32> {
  %p = tensor.cast %x : tensor<0x9xf32> to tensor<?x9xf32>
  %q = tensor.cast %y : tensor<1x9xf32> to tensor<?x9xf32>
  %r = tensor.concat dim(0) %q, %p : (tensor<?x9xf32>, tensor<?x9xf32>) -> tensor<1x9xf32>
  return %r : tensor<1x9xf32>
}

// CHECK-LABEL: func.func @other_parts
// CHECK: tensor.concat dim(1) %{{.*}}, %{{.*}} : (tensor<2x?xf32>, tensor<2x3xf32>)
// CHECK: tensor.pad
func.func @other_parts(%x: tensor<2x?xf32>, %y: tensor<2x3xf32>) -> (tensor<2x?xf32>, tensor<4x5xf32>) {
  %c = arith.constant 1.0 : f32
  %q = tensor.concat dim(1) %x, %y : (tensor<2x?xf32>, tensor<2x3xf32>) -> tensor<2x?xf32>
  %p = tensor.pad %y low[2, 2] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<2x3xf32> to tensor<4x5xf32>
  return %q, %p : tensor<2x?xf32>, tensor<4x5xf32>
}

// Complex numbers have a zero to pad with, too.
// CHECK-LABEL: func.func @pack_of_complex
// CHECK: complex.constant [0.000000e+00 : f32, 0.000000e+00 : f32]
// CHECK-NOT: linalg.pack
// CHECK: linalg.transpose
func.func @pack_of_complex(%x: tensor<4x6xcomplex<f32>>, %o: tensor<3x4x2xcomplex<f32>>) -> tensor<3x4x2xcomplex<f32>> {
  %r = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [2] into %o
    : tensor<4x6xcomplex<f32>> -> tensor<3x4x2xcomplex<f32>>
  return %r : tensor<3x4x2xcomplex<f32>>
}
