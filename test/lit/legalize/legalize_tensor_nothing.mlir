// Structured ops that compute nothing are the outputs that they were given.
// RUN: morello-opt %s --morello-legalize-tensor --split-input-file | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @constant_of_nothing
// CHECK-SAME: (%{{.*}}: tensor<5x0xf32>, %[[OUT:.*]]: tensor<5xf32>)
// CHECK: return %[[OUT]]
func.func @constant_of_nothing(%x: tensor<5x0xf32>, %out: tensor<5xf32>) -> tensor<5xf32> {
  %c = arith.constant 7.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x0xf32>) outs(%out : tensor<5xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %c : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @product_of_no_columns
// CHECK-NOT: linalg.matmul
// CHECK: return %arg2
func.func @product_of_no_columns(%a: tensor<4x0xf32>, %b: tensor<0x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @there_may_be_some
// CHECK: linalg.generic
// CHECK: linalg.matmul
func.func @there_may_be_some(%x: tensor<5x?xf32>, %out: tensor<5xf32>, %b: tensor<?x6xf32>, %c: tensor<5x6xf32>) -> (tensor<5xf32>, tensor<5x6xf32>) {
  %v = arith.constant 7.0 : f32
  %r = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x?xf32>) outs(%out : tensor<5xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %m = linalg.matmul ins(%x, %b : tensor<5x?xf32>, tensor<?x6xf32>) outs(%c : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %r, %m : tensor<5xf32>, tensor<5x6xf32>
}
