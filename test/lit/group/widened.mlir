// Inputs that are widened before the contraction are read as they were.
// RUN: morello-opt %s --morello-group --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @cast_and_transpose
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : tensor<4x5xi8>, tensor<6x5xi8>)
// CHECK: ^bb0(%[[X:.*]]: i8, %[[Y:.*]]: i8, %[[ACC:.*]]: i32):
// CHECK-DAG: arith.extsi %[[X]]
// CHECK-DAG: arith.extui %[[Y]]
// CHECK: return %[[R]]
func.func @cast_and_transpose(%a: tensor<4x5xi8>, %b: tensor<6x5xi8>, %c: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %e = tensor.empty() : tensor<4x5xi32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<4x5xi8>) outs(%e : tensor<4x5xi32>) {
  ^bb0(%x: i8, %o: i32):
    %y = arith.extsi %x : i8 to i32
    linalg.yield %y : i32
  } -> tensor<4x5xi32>
  %e2 = tensor.empty() : tensor<5x6xi32>
  %wide2 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<6x5xi8>) outs(%e2 : tensor<5x6xi32>) {
  ^bb0(%x: i8, %o: i32):
    %y = arith.extui %x : i8 to i32
    linalg.yield %y : i32
  } -> tensor<5x6xi32>
  %0 = linalg.matmul ins(%wide, %wide2 : tensor<4x5xi32>, tensor<5x6xi32>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Bits have no kernel: the contraction stays on what they were widened to.
// CHECK-LABEL: func.func @bits
// CHECK: linalg.matmul {{.*}}ins(%{{.*}}, %arg1 : tensor<4x5xi32>, tensor<5x6xi32>)
func.func @bits(%a: tensor<4x5xi1>, %b: tensor<5x6xi32>, %c: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %e = tensor.empty() : tensor<4x5xi32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<4x5xi1>) outs(%e : tensor<4x5xi32>) {
  ^bb0(%x: i1, %o: i32):
    %y = arith.extui %x : i1 to i32
    linalg.yield %y : i32
  } -> tensor<4x5xi32>
  %0 = linalg.matmul ins(%wide, %b : tensor<4x5xi32>, tensor<5x6xi32>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}
