// Contractions are known by maps, iterators and body; each gets a number of its own.
// RUN: morello-opt %s --morello-group --split-input-file | FileCheck %s

// CHECK-LABEL: func @named
// CHECK: linalg.matmul {morello.group = 0 : i64}
// CHECK: linalg.matmul {{.*}}morello.group = 1 : i64
// CHECK: linalg.batch_matmul {morello.group = 2 : i64}
// CHECK: linalg.matvec {morello.group = 3 : i64}
// CHECK: linalg.vecmat {morello.group = 4 : i64}
// CHECK: linalg.dot {morello.group = 5 : i64}
// CHECK: linalg.batch_matvec {morello.group = 6 : i64}
// CHECK: linalg.batch_vecmat {morello.group = 7 : i64}
// CHECK: linalg.batch_reduce_matmul {morello.group = 8 : i64}
// CHECK: linalg.mmt4d {morello.group = 9 : i64}
// CHECK: linalg.contract {{.*}}morello.group = 10 : i64
func.func @named(%m: memref<4x4xf32>, %o: memref<4x4xf32>, %b: memref<2x4x4xf32>, %p: memref<2x4x4xf32>,
                 %v: memref<4xf32>, %w: memref<4xf32>, %s: memref<f32>, %bv: memref<2x4xf32>, %bw: memref<2x4xf32>,
                 %l4: memref<1x2x3x4xf32>, %r4: memref<2x2x5x4xf32>, %o4: memref<1x2x3x5xf32>) {
  linalg.matmul ins(%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%o : memref<4x4xf32>)
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%o : memref<4x4xf32>)
  linalg.batch_matmul ins(%b, %b : memref<2x4x4xf32>, memref<2x4x4xf32>) outs(%p : memref<2x4x4xf32>)
  linalg.matvec ins(%m, %v : memref<4x4xf32>, memref<4xf32>) outs(%w : memref<4xf32>)
  linalg.vecmat ins(%v, %m : memref<4xf32>, memref<4x4xf32>) outs(%w : memref<4xf32>)
  linalg.dot ins(%v, %v : memref<4xf32>, memref<4xf32>) outs(%s : memref<f32>)
  linalg.batch_matvec ins(%b, %bv : memref<2x4x4xf32>, memref<2x4xf32>) outs(%bw : memref<2x4xf32>)
  linalg.batch_vecmat ins(%bv, %b : memref<2x4xf32>, memref<2x4x4xf32>) outs(%bw : memref<2x4xf32>)
  linalg.batch_reduce_matmul ins(%b, %b : memref<2x4x4xf32>, memref<2x4x4xf32>) outs(%o : memref<4x4xf32>)
  linalg.mmt4d ins(%l4, %r4 : memref<1x2x3x4xf32>, memref<2x2x5x4xf32>) outs(%o4 : memref<1x2x3x5xf32>)
  linalg.contract indexing_maps = [affine_map<(k, m) -> (m, k)>, affine_map<(k, m) -> (k)>, affine_map<(k, m) -> (m)>]
    ins(%m, %v : memref<4x4xf32>, memref<4xf32>) outs(%w : memref<4xf32>)
  return
}

// -----

#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d0, d1)>
#out = affine_map<(d0, d1, d2) -> (d2, d1)>

// Loops in any order, factors and terms in any order, fused or not, fast-math flags or not.
// CHECK-LABEL: func @generics
// CHECK: linalg.generic {{.*}}attrs = {morello.group = 0 : i64}
// CHECK: linalg.generic {{.*}}attrs = {morello.group = 1 : i64}
// CHECK: linalg.generic {{.*}}attrs = {morello.group = 2 : i64}
func.func @generics(%a: tensor<5x4xf64>, %b: tensor<5x6xf64>, %c: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a, %b : tensor<5x4xf64>, tensor<5x6xf64>) outs(%c : tensor<4x6xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %p = arith.mulf %y, %x : f64
    %q = arith.addf %p, %z : f64
    linalg.yield %q : f64
  } -> tensor<4x6xf64>
  %1 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a, %b : tensor<5x4xf64>, tensor<5x6xf64>) outs(%0 : tensor<4x6xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %p = arith.mulf %x, %y fastmath<contract> : f64
    %q = arith.addf %z, %p fastmath<reassoc> : f64
    linalg.yield %q : f64
  } -> tensor<4x6xf64>
  %2 = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a, %b : tensor<5x4xf64>, tensor<5x6xf64>) outs(%1 : tensor<4x6xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %q = math.fma %x, %y, %z : f64
    linalg.yield %q : f64
  } -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}

// -----

// A size-one dim read at 0 is no loop at all.
// CHECK-LABEL: func @constant_index
// CHECK: linalg.generic {{.*}}attrs = {morello.group = 0 : i64}
func.func @constant_index(%a: tensor<1x4xf32>, %b: tensor<4x6xf32>, %c: tensor<6xf32>) -> tensor<6xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(n, k) -> (0, k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : tensor<1x4xf32>, tensor<4x6xf32>) outs(%c : tensor<6xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
