// Products read transposed operands where they are, through what reshapes the transposes.
// RUN: morello-opt %s --morello-group --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func @heads
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[K:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2], [3]] : tensor<1x2x5x3xf32> into tensor<2x5x3xf32>
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-SAME:      ins(%{{.*}}, %[[K]] :
func.func @heads(%q: tensor<2x4x3xf32>, %k: tensor<1x2x5x3xf32>) -> tensor<2x4x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x3x5xf32>
  %t = linalg.transpose ins(%k : tensor<1x2x5x3xf32>) outs(%e : tensor<1x2x3x5xf32>) permutation = [0, 1, 3, 2]
  %c = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<1x2x3x5xf32> into tensor<2x3x5xf32>
  %o = tensor.empty() : tensor<2x4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %r = linalg.batch_matmul ins(%q, %c : tensor<2x4x3xf32>, tensor<2x3x5xf32>) outs(%f : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %r : tensor<2x4x5xf32>
}

// CHECK-LABEL: func @expanded
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[W:.*]] = tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2]] output_shape [3, 1, 5] : tensor<3x5xf32> into tensor<3x1x5xf32>
// CHECK:         tensor.empty() : tensor<1x5x3xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      ins(%[[W]] :
func.func @expanded(%w: tensor<3x5xf32>) -> tensor<1x5x3xf32> {
  %e = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%w : tensor<3x5xf32>) outs(%e : tensor<5x3xf32>) permutation = [1, 0]
  %x = tensor.expand_shape %t [[0, 1], [2]] output_shape [1, 5, 3] : tensor<5x3xf32> into tensor<1x5x3xf32>
  return %x : tensor<1x5x3xf32>
}

// The batch would not be outermost in what is read.
// CHECK-LABEL: func @batch_inside
// CHECK:         linalg.transpose
// CHECK:         linalg.batch_matmul
func.func @batch_inside(%q: tensor<2x4x3xf32>, %k: tensor<1x5x2x3xf32>) -> tensor<2x4x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x3x5xf32>
  %t = linalg.transpose ins(%k : tensor<1x5x2x3xf32>) outs(%e : tensor<1x2x3x5xf32>) permutation = [0, 2, 3, 1]
  %c = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<1x2x3x5xf32> into tensor<2x3x5xf32>
  %o = tensor.empty() : tensor<2x4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %r = linalg.batch_matmul ins(%q, %c : tensor<2x4x3xf32>, tensor<2x3x5xf32>) outs(%f : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %r : tensor<2x4x5xf32>
}

// What becomes one dim lies apart in the source, or somebody else reads the copy.
// CHECK-LABEL: func @apart
// CHECK:         linalg.transpose
// CHECK:         linalg.transpose
func.func @apart(%x: tensor<2x3x4xf32>, %y: tensor<1x2x3xf32>) -> (tensor<6x4xf32>, tensor<2x3xf32>, tensor<1x3x2xf32>) {
  %e = tensor.empty() : tensor<3x2x4xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<3x2x4xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0, 1], [2]] : tensor<3x2x4xf32> into tensor<6x4xf32>
  %e2 = tensor.empty() : tensor<1x3x2xf32>
  %t2 = linalg.transpose ins(%y : tensor<1x2x3xf32>) outs(%e2 : tensor<1x3x2xf32>) permutation = [0, 2, 1]
  %c2 = tensor.collapse_shape %t2 [[0, 1], [2]] : tensor<1x3x2xf32> into tensor<3x2xf32>
  %e3 = tensor.empty() : tensor<2x3xf32>
  %t3 = linalg.transpose ins(%c2 : tensor<3x2xf32>) outs(%e3 : tensor<2x3xf32>) permutation = [1, 0]
  return %c, %t3, %t2 : tensor<6x4xf32>, tensor<2x3xf32>, tensor<1x3x2xf32>
}
