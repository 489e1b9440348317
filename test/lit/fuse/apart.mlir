// What does not become one nest: contractions, reductions over other dims, what would be computed over and over again.
// RUN: morello-opt %s --morello-group --morello-fuse --split-input-file | FileCheck %s

// Contractions are left to morello-lift, with their fills.
// CHECK-LABEL: func @contraction
// CHECK: linalg.fill {morello.group = 0 : i64}
// CHECK: linalg.matmul {morello.group = 0 : i64}
// CHECK-NOT: scf.execute_region
func.func @contraction(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// Convolutions too, with the bias that one starts from.
// CHECK-LABEL: func @convolution
// CHECK: linalg.broadcast {{.*}}morello.group = 0 : i64
// CHECK: linalg.conv_2d_nchw_fchw {morello.group = 0 : i64}
// CHECK-NOT: scf.execute_region
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  %e = tensor.empty() : tensor<1x4x6x6xf32>
  %s = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<1x4x6x6xf32>) dimensions = [0, 2, 3]
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%s : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %r : tensor<1x4x6x6xf32>
}

// -----

// An exponential of one element a column is not computed again for every row.
// CHECK-LABEL: func @broadcast
// CHECK-COUNT-2: scf.execute_region
func.func @broadcast(%x: tensor<40x6xf32>, %w: tensor<6xf32>) -> tensor<40x6xf32> {
  %e0 = tensor.empty() : tensor<6xf32>
  %e1 = tensor.empty() : tensor<40x6xf32>
  %s = linalg.exp ins(%w : tensor<6xf32>) outs(%e0 : tensor<6xf32>) -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<40x6xf32>, tensor<6xf32>) outs(%e1 : tensor<40x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<40x6xf32>
  return %r : tensor<40x6xf32>
}

// -----

// Dynamic sizes, assertions beside divisions that trap, and places of type index are left as they are.
// CHECK-LABEL: func @left
// CHECK-NOT: scf.execute_region
func.func @left(%x: tensor<?xf32>, %y: tensor<4xf32>, %n: index, %i: tensor<4xindex>, %w: tensor<4xi32>) -> (tensor<?xf32>, tensor<4xi32>, tensor<4xf32>) {
  %z = arith.constant 0 : i32
  %e2 = tensor.empty() : tensor<4xi32>
  %e0 = tensor.empty(%n) : tensor<?xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %a = linalg.exp ins(%x : tensor<?xf32>) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%w : tensor<4xi32>) outs(%e2 : tensor<4xi32>) {
  ^bb0(%v: i32, %o: i32):
    %t = arith.cmpi ne, %v, %z : i32
    cf.assert %t, "zero"
    %q = arith.divsi %z, %v : i32
    linalg.yield %q : i32
  } -> tensor<4xi32>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i : tensor<4xindex>) outs(%e1 : tensor<4xf32>) {
  ^bb0(%v: index, %o: f32):
    %t = tensor.extract %y[%v] : tensor<4xf32>
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %a, %b, %c : tensor<?xf32>, tensor<4xi32>, tensor<4xf32>
}
