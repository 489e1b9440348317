// Transposed and broadcast inputs are read where they come from: a copy is only another indexing map.
// RUN: morello-opt %s --morello-group --split-input-file | FileCheck %s
// RUN: morello-opt %s --morello-group=prepare=false --split-input-file | FileCheck %s --check-prefix=OFF

// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @transposed
// CHECK-SAME: %[[A:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<6x5xf32>, %[[C:.*]]: tensor<4x6xf32>
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #[[OUT]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[A]], %[[B]] :
// CHECK-SAME: outs(%[[C]] :
// CHECK-SAME: attrs = {morello.group = 0 : i64, my.attribute}
// OFF-LABEL: func @transposed
// OFF: linalg.transpose
// OFF: linalg.matmul {morello.group = 0 : i64, my.attribute}
func.func @transposed(%a: tensor<4x5xf32>, %b: tensor<6x5xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<5x6xf32>
  %t = linalg.transpose ins(%b : tensor<6x5xf32>) outs(%e : tensor<5x6xf32>) permutation = [1, 0]
  %0 = linalg.matmul {my.attribute} ins(%a, %t : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// A copy that something else needs stays.
// CHECK-LABEL: func @needed_elsewhere
// CHECK-SAME: %[[A:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<6x5xf32>
// CHECK: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// OFF-LABEL: func @needed_elsewhere
func.func @needed_elsewhere(%a: tensor<4x5xf32>, %b: tensor<6x5xf32>, %c: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<5x6xf32>) {
  %e = tensor.empty() : tensor<5x6xf32>
  %t = linalg.transpose ins(%b : tensor<6x5xf32>) outs(%e : tensor<5x6xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%a, %t : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %t : tensor<4x6xf32>, tensor<5x6xf32>
}

// -----

// Through several copies, one of them a broadcast along the batch dim.
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-LABEL: func @broadcast_weights
// CHECK-SAME: %[[A:.*]]: tensor<3x4x5xf32>, %[[B:.*]]: tensor<6x5xf32>
// CHECK-NOT: linalg.broadcast
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[W]], #{{.*}}], {{.*}} ins(%[[A]], %[[B]] :
// OFF-LABEL: func @broadcast_weights
func.func @broadcast_weights(%a: tensor<3x4x5xf32>, %b: tensor<6x5xf32>, %c: tensor<3x4x6xf32>) -> tensor<3x4x6xf32> {
  %e = tensor.empty() : tensor<5x6xf32>
  %t = linalg.transpose ins(%b : tensor<6x5xf32>) outs(%e : tensor<5x6xf32>) permutation = [1, 0]
  %f = tensor.empty() : tensor<3x5x6xf32>
  %w = linalg.broadcast ins(%t : tensor<5x6xf32>) outs(%f : tensor<3x5x6xf32>) dimensions = [0]
  %0 = linalg.batch_matmul ins(%a, %w : tensor<3x4x5xf32>, tensor<3x5x6xf32>) outs(%c : tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %0 : tensor<3x4x6xf32>
}

// -----

// Without its k dim the input would make no contraction: the copy stays.
// CHECK-LABEL: func @broadcast_along_k
// CHECK: linalg.broadcast
// CHECK: linalg.matmul {morello.group = 0 : i64}
// OFF-LABEL: func @broadcast_along_k
func.func @broadcast_along_k(%a: tensor<4xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %w = linalg.broadcast ins(%a : tensor<4xf32>) outs(%e : tensor<4x5xf32>) dimensions = [1]
  %0 = linalg.matmul ins(%w, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// No copy: the elements change.
// CHECK-LABEL: func @not_a_copy
// CHECK: linalg.exp
// CHECK: linalg.matmul {morello.group = 0 : i64}
// OFF-LABEL: func @not_a_copy
func.func @not_a_copy(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %w = linalg.exp ins(%a : tensor<4x5xf32>) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %0 = linalg.matmul ins(%w, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
