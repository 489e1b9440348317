// RUN: morello-opt %s --split-input-file --pass-pipeline='builtin.module(morello-group)' | FileCheck %s

// Between two products, what a body says of positions alone is read from a tensor.
// CHECK-LABEL: func.func @apart
// CHECK: %[[MASK:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<5x7xi1>)
// CHECK-DAG: linalg.index 0
// CHECK-DAG: linalg.index 1
// CHECK: linalg.yield %{{.*}} : i1
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[MASK]] : tensor<2x5x7xf32>, tensor<5x7xi1>)
// CHECK-NOT: linalg.index
// CHECK: arith.select %{{.*}}
// CHECK: linalg.softmax
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @apart(%q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %seen = arith.cmpi sle, %j, %i : index
    %p = arith.mulf %a, %scale : f32
    %y = arith.select %seen, %p, %none : f32
    linalg.yield %y : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%x : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// Nothing is weighed with it: nests know positions.
// CHECK-LABEL: func.func @no_product_after
// CHECK-NOT: i1
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x5x7xf32>) outs
// CHECK: linalg.index
// CHECK: linalg.softmax
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @no_product_after(%q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>) -> tensor<2x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %seen = arith.cmpi sle, %j, %i : index
    %y = arith.select %seen, %a, %none : f32
    linalg.yield %y : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%x : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  return %w : tensor<2x5x7xf32>
}

// -----

// One that is as large as the scores, and one whose loops have other elements beside positions.
// CHECK-LABEL: func.func @of_more_than_positions
// CHECK-NOT: xi1>
// CHECK: return
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @of_more_than_positions(%q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %c: f32):
    %h = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %ih = arith.addi %h, %i : index
    %seen = arith.cmpi sle, %j, %ih : index
    %y = arith.select %seen, %a, %none : f32
    linalg.yield %y : f32
  } -> tensor<2x5x7xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 1 : index
    %ii = arith.index_cast %i : index to i32
    %ai = arith.fptosi %a : f32 to i32
    %more = arith.cmpi slt, %ai, %ii : i32
    %z = arith.select %more, %a, %none : f32
    linalg.yield %z : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%y : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}
