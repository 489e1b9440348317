// The batch of a contraction comes first in what it reads, and its result has the rows of what copies it.
// RUN: morello-opt %s --morello-group --mlir-print-local-scope | FileCheck %s

// JAX's attention: heads lie inside of the sequence.
// CHECK-LABEL: func @heads_inside
// CHECK-DAG:     linalg.generic {{.*}} ins(%arg0 : tensor<64x2x8xf32>) outs(%{{.*}} : tensor<2x64x8xf32>)
// CHECK-DAG:     linalg.generic {{.*}} ins(%arg1 : tensor<64x2x8xf32>) outs(%{{.*}} : tensor<2x64x8xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-SAME:      ins(%{{.*}}, %{{.*}} : tensor<2x64x8xf32>, tensor<2x64x8xf32>)
func.func @heads_inside(%q: tensor<64x2x8xf32>, %k: tensor<64x2x8xf32>) -> tensor<2x64x64xf32> {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<2x64x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, b, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<64x2x8xf32>, tensor<64x2x8xf32>) outs(%f : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  return %r : tensor<2x64x64xf32>
}

// Elements that are used a few times are read where they are; a batch that the result has inside stays there.
// CHECK-LABEL: func @as_it_is
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @as_it_is(%q: tensor<9x2x8xf32>, %k: tensor<9x2x8xf32>, %p: tensor<64x2x8xf32>) -> (tensor<2x9x9xf32>, tensor<64x2x64xf32>) {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<2x9x9xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2x9x9xf32>) -> tensor<2x9x9xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, b, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<9x2x8xf32>, tensor<9x2x8xf32>) outs(%f : tensor<2x9x9xf32>) -> tensor<2x9x9xf32>
  %o2 = tensor.empty() : tensor<64x2x64xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%o2 : tensor<64x2x64xf32>) -> tensor<64x2x64xf32>
  %r2 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (n, b, k)>, affine_map<(b, m, n, k) -> (m, b, n)>]
      ins(%p, %p : tensor<64x2x8xf32>, tensor<64x2x8xf32>) outs(%f2 : tensor<64x2x64xf32>) -> tensor<64x2x64xf32>
  return %r, %r2 : tensor<2x9x9xf32>, tensor<64x2x64xf32>
}

// A transpose that would move the last dim is dear: no copies.
// CHECK-LABEL: func @turned
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @turned(%q: tensor<64x8x2xf32>, %k: tensor<2x64x8xf32>) -> tensor<2x64x64xf32> {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<2x64x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<64x8x2xf32>, tensor<2x64x8xf32>) outs(%f : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  return %r : tensor<2x64x64xf32>
}

// The result is copied with rows for columns: it is made that way, with the operands in other places.
// CHECK-LABEL: func @copied
// CHECK:         linalg.generic {{.*}} ins(%arg1, %arg0 : tensor<6x5xf32>, tensor<4x6xf32>) outs(%{{.*}} : tensor<5x4xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME:      ins(%{{.*}} : tensor<5x4xf32>)
func.func @copied(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>) -> tensor<5x4xf32> {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%r : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  return %t : tensor<5x4xf32>
}

// Not where somebody else reads it, or it is added to something.
// CHECK-LABEL: func @not_copied
// CHECK:         linalg.matmul
// CHECK:         linalg.transpose
// CHECK:         linalg.matmul
// CHECK:         linalg.transpose
func.func @not_copied(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>, %c: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<5x4xf32>, tensor<5x4xf32>) {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%r : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  %r2 = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%c : tensor<4x5xf32>) -> tensor<4x5xf32>
  %t2 = linalg.transpose ins(%r2 : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  return %r, %t, %t2 : tensor<4x5xf32>, tensor<5x4xf32>, tensor<5x4xf32>
}

// Nor where a schedule is written on it, which is for these rows and columns.
// CHECK-LABEL: func @scheduled
// CHECK:         linalg.matmul {{.*}} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<6x5xf32>)
// CHECK:         linalg.transpose
func.func @scheduled(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>) -> tensor<5x4xf32> {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul {morello.schedule = ["tile m by 3:", "    ?", "rest:", "    ?"]} ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%r : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  return %t : tensor<5x4xf32>
}
