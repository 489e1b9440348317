// RUN: morello-opt %s --morello-tidy | FileCheck %s

#x = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>

// The place of a maximum that nobody asks for; the index type goes with it.
// CHECK-LABEL: func.func @largest
// CHECK: %{{.*}} = linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<4xf32>)
// CHECK-NEXT: (%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[IN]], %[[OUT]]
// CHECK-NEXT: linalg.yield %[[M]] : f32
func.func @largest(%x: tensor<4x8xf32>, %init: tensor<4xf32>, %place: tensor<4xi64>) -> tensor<4xf32> {
  %r:2 = linalg.generic {indexing_maps = [#x, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%init, %place : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.maximumf %in, %out : f32
    %3 = arith.cmpf ogt, %in, %out : f32
    %4 = arith.select %3, %1, %at : i64
    linalg.yield %2, %4 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}

// Where the maximum is depends on what it is.
// CHECK-LABEL: func.func @place
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, i64
func.func @place(%x: tensor<4x8xf32>, %init: tensor<4xf32>, %place: tensor<4xi64>) -> tensor<4xi64> {
  %r:2 = linalg.generic {indexing_maps = [#x, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%init, %place : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.maximumf %in, %out : f32
    %3 = arith.cmpf ogt, %in, %out : f32
    %4 = arith.select %3, %1, %at : i64
    linalg.yield %2, %4 : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#1 : tensor<4xi64>
}

// Constants: rounded, and not read from a tensor.
// CHECK-LABEL: func.func @numbers
// CHECK-DAG: arith.constant 1.250000e-01 : f32
// CHECK-DAG: arith.constant 2.000000e+00 : f32
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}} : tensor<4x8xf32>)
// CHECK-NOT: truncf
func.func @numbers(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eighth = arith.constant 0.125 : f64
  %two = arith.constant dense<2.0> : tensor<f32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#x, #none, #x], iterator_types = ["parallel", "parallel"]}
      ins(%x, %two : tensor<4x8xf32>, tensor<f32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %n: f32, %out: f32):
    %0 = arith.truncf %eighth : f64 to f32
    %1 = arith.mulf %in, %0 : f32
    %2 = arith.addf %1, %n : f32
    linalg.yield %2 : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
