// RUN: morello-opt %s --split-input-file --pass-pipeline='builtin.module(morello-group,morello-fuse,morello-bufferize,morello-lift{nests=true},morello-chain,canonicalize)' 2>/dev/null | FileCheck %s

// A mask that is made of positions: what it hides is known.
// CHECK-LABEL: func.func @causal
// CHECK: "morello.chain5"
// CHECK-SAME: "t1 = Softmax({{.*}}) of x2, t0"
// CHECK-SAME: "x2 = 0 above 1"
#id = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
#two = affine_map<(m, n) -> (m, n)>
func.func @causal(%q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %one = arith.constant 1 : index
  %me = tensor.empty() : tensor<5x7xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<5x7xi1>) {
  ^bb0(%c: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %last = arith.addi %i, %one : index
    %p = arith.cmpi sle, %j, %last : index
    linalg.yield %p : i1
  } -> tensor<5x7xi1>
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#mask, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%mask, %s : tensor<5x7xi1>, tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %p = arith.select %a, %b, %least : f32
    linalg.yield %p : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// One that is given: nothing is known of it.
// CHECK-LABEL: func.func @given
// CHECK: "morello.chain5"
// CHECK-NOT: above
#id = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
func.func @given(%mask: tensor<5x7xi1>, %q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#mask, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%mask, %s : tensor<5x7xi1>, tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %p = arith.select %a, %b, %least : f32
    linalg.yield %p : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// One that is read with rows for columns hides what was written below the diagonal: nothing is known of it.
// CHECK-LABEL: func.func @transposed
// CHECK: "morello.chain5"
// CHECK-NOT: above
#id = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (n, m)>
#row = affine_map<(b, m, n) -> (b, m)>
#two = affine_map<(m, n) -> (m, n)>
func.func @transposed(%q: tensor<2x6x3xf32>, %k: tensor<2x3x6xf32>, %v: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %one = arith.constant 1 : index
  %me = tensor.empty() : tensor<6x6xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<6x6xi1>) {
  ^bb0(%c: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %last = arith.addi %i, %one : index
    %p = arith.cmpi sle, %j, %last : index
    linalg.yield %p : i1
  } -> tensor<6x6xi1>
  %e = tensor.empty() : tensor<2x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x6x3xf32>, tensor<2x3x6xf32>) outs(%f : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %masked = linalg.generic {indexing_maps = [#mask, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%mask, %s : tensor<6x6xi1>, tensor<2x6x6xf32>) outs(%e : tensor<2x6x6xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %p = arith.select %a, %b, %least : f32
    linalg.yield %p : f32
  } -> tensor<2x6x6xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<2x6x6xf32>) outs(%e : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %oe = tensor.empty() : tensor<2x6x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<2x6x6xf32>, tensor<2x6x4xf32>) outs(%of : tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %o : tensor<2x6x4xf32>
}

// -----

// One that is computed in the body that scales the scores, of one head, and one that is added there.
// CHECK-LABEL: func.func @in_the_body
// CHECK: "morello.chain5"
// CHECK-SAME: "t1 = Softmax({{.*}}) of x2, t0"
// CHECK-SAME: "x2 = 0 above 0"
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @in_the_body(%q: tensor<1x5x3xf32>, %k: tensor<1x3x7xf32>, %v: tensor<1x7x4xf32>) -> tensor<1x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<1x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<1x5x3xf32>, tensor<1x3x7xf32>) outs(%f : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%s : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) {
  ^bb0(%b: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.cmpi sge, %i, %j : index
    %x = arith.mulf %b, %scale : f32
    %y = arith.select %p, %x, %least : f32
    linalg.yield %y : f32
  } -> tensor<1x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %oe = tensor.empty() : tensor<1x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<1x5x7xf32>, tensor<1x7x4xf32>) outs(%of : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return %o : tensor<1x5x4xf32>
}

// -----

// CHECK-LABEL: func.func @added
// CHECK: "morello.chain5"
// CHECK-SAME: "t1 = Softmax({{.*}}add(select({{.*}}) of t0, x2"
// CHECK-SAME: "x2 = 0 above 0"
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @added(%q: tensor<1x5x3xf32>, %k: tensor<1x3x7xf32>, %v: tensor<1x7x4xf32>) -> tensor<1x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<1x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<1x5x3xf32>, tensor<1x3x7xf32>) outs(%f : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%s : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) {
  ^bb0(%b: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.cmpi sge, %i, %j : index
    %x = arith.mulf %b, %scale : f32
    %m = arith.select %p, %zero, %least : f32
    %y = arith.addf %x, %m : f32
    linalg.yield %y : f32
  } -> tensor<1x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %oe = tensor.empty() : tensor<1x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<1x5x7xf32>, tensor<1x7x4xf32>) outs(%of : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return %o : tensor<1x5x4xf32>
}

// -----

// Of what it is added to nothing is known.
// CHECK-LABEL: func.func @added_to_something_else
// CHECK: "morello.chain5"
// CHECK-SAME: "t1 = Softmax({{.*}}exp(mul({{.*}}) of t0, x2"
// CHECK-NOT: above
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @added_to_something_else(%q: tensor<1x5x3xf32>, %k: tensor<1x3x7xf32>, %v: tensor<1x7x4xf32>) -> tensor<1x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<1x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<1x5x3xf32>, tensor<1x3x7xf32>) outs(%f : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%s : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) {
  ^bb0(%b: f32, %c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.cmpi sge, %i, %j : index
    %x = arith.mulf %b, %scale : f32
    %e2 = math.exp %x : f32
    %m = arith.select %p, %zero, %least : f32
    %y = arith.addf %e2, %m : f32
    linalg.yield %y : f32
  } -> tensor<1x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%masked : tensor<1x5x7xf32>) outs(%e : tensor<1x5x7xf32>) -> tensor<1x5x7xf32>
  %oe = tensor.empty() : tensor<1x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<1x5x7xf32>, tensor<1x7x4xf32>) outs(%of : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return %o : tensor<1x5x4xf32>
}

// -----

// One for each sequence and all of its heads: b is two dims of the softmax.
// CHECK-LABEL: func.func @per_sequence
// CHECK: "morello.chain5"
// CHECK-SAME: "t1 = Softmax([2, 3, 5, 7 scan]{{.*}}) of x2, t0"
#all = affine_map<(s, h, m, n) -> (s, h, m, n)>
#mask = affine_map<(s, h, m, n) -> (s, n)>
func.func @per_sequence(%mask: tensor<2x7xf32>, %q: tensor<6x5x3xf32>, %k: tensor<6x3x7xf32>, %v: tensor<6x7x4xf32>) -> tensor<6x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<6x5x3xf32>, tensor<6x3x7xf32>) outs(%f : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %x = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 3, 5, 7] : tensor<6x5x7xf32> into tensor<2x3x5x7xf32>
  %xe = tensor.empty() : tensor<2x3x5x7xf32>
  %masked = linalg.generic {indexing_maps = [#mask, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%mask, %x : tensor<2x7xf32>, tensor<2x3x5x7xf32>) outs(%xe : tensor<2x3x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x3x5x7xf32>
  %w = linalg.softmax dimension(3) ins(%masked : tensor<2x3x5x7xf32>) outs(%xe : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<2x3x5x7xf32> into tensor<6x5x7xf32>
  %oe = tensor.empty() : tensor<6x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
  %o = linalg.batch_matmul ins(%y, %v : tensor<6x5x7xf32>, tensor<6x7x4xf32>) outs(%of : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
  return %o : tensor<6x5x4xf32>
}

// -----

// A softmax over the heads: its rows lie in no tile.
// CHECK-LABEL: func.func @over_heads
// CHECK-NOT: morello.chain
#all = affine_map<(s, h, m, n) -> (s, h, m, n)>
func.func @over_heads(%q: tensor<6x5x3xf32>, %k: tensor<6x3x7xf32>, %v: tensor<6x7x4xf32>) -> tensor<6x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<6x5x3xf32>, tensor<6x3x7xf32>) outs(%f : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %x = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 3, 5, 7] : tensor<6x5x7xf32> into tensor<2x3x5x7xf32>
  %xe = tensor.empty() : tensor<2x3x5x7xf32>
  %w = linalg.softmax dimension(1) ins(%x : tensor<2x3x5x7xf32>) outs(%xe : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<2x3x5x7xf32> into tensor<6x5x7xf32>
  %oe = tensor.empty() : tensor<6x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
  %o = linalg.batch_matmul ins(%y, %v : tensor<6x5x7xf32>, tensor<6x7x4xf32>) outs(%of : tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
  return %o : tensor<6x5x4xf32>
}
