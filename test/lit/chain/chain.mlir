// RUN: morello-opt %s --split-input-file --pass-pipeline='builtin.module(morello-group,morello-fuse,morello-bufferize,morello-lift{nests=true threads=2},morello-chain,canonicalize)' 2>/dev/null | FileCheck %s

// Attention: scores, their softmax, and what it weighs. Nothing else sees the intermediate results.
// CHECK-LABEL: func.func @attention
// CHECK: memref.alloc() {{.*}} : memref<2x5x4xf32>
// CHECK-NOT: memref.alloc
// CHECK: call @morello_chain_0(
// CHECK-NEXT: return
// CHECK: func.func private @morello_chain_0
// CHECK: "morello.chain5"
// CHECK-SAME: dims = array<i64: 2, 5>
// CHECK-SAME: "t0 = Matmul([2, 5, 3, 7], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial, then \22y = mul(x0, x1)\22 [f32, (f32, [n])]) of x0, x1, x2"
// CHECK-SAME: "t1 = Compose([2, 5, 7 scan], (f32, GL, [35, 7, 1]), (f32, GL, [35, 7, 1]), \22{{.*}}\22, serial) of t0"
// CHECK-SAME: "y = Matmul([2, 5, 7, 4], {{.*}}, serial) of t1, x3"
// CHECK-SAME: threads = 2
// CHECK-NOT: morello.spec
#id = affine_map<(b, m, n) -> (b, m, n)>
#col = affine_map<(b, m, n) -> (n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @attention(%q: tensor<2x5x3xf32>, %k: tensor<2x3x7xf32>, %w: tensor<7xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x5x3xf32>, tensor<2x3x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%s, %w : tensor<2x5x7xf32>, tensor<7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x5x7xf32>
  %re = tensor.empty() : tensor<2x5xf32>
  %rf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce ins(%scaled : tensor<2x5x7xf32>) outs(%rf : tensor<2x5xf32>) dimensions = [2]
    (%a: f32, %b: f32) { %r = arith.addf %a, %b : f32 linalg.yield %r : f32 }
  %n = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scaled, %sum : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.divf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.batch_matmul ins(%n, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// The intermediate result is the second operand: all of it is needed for every row.
// CHECK-LABEL: func.func @rhs
// CHECK-NOT: morello.chain
func.func @rhs(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<3x4xf32>, %o: memref<3x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.fill ins(%zero : f32) outs(%o : memref<3x6xf32>)
  linalg.matmul ins(%c, %t : memref<3x4xf32>, memref<4x6xf32>) outs(%o : memref<3x6xf32>)
  memref.dealloc %t : memref<4x6xf32>
  return
}

// -----

// Somebody else needs the intermediate result.
// CHECK-LABEL: func.func @needed
// CHECK-NOT: morello.chain
func.func @needed(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<6x3xf32>, %o: memref<4x3xf32>) -> memref<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.fill ins(%zero : f32) outs(%o : memref<4x3xf32>)
  linalg.matmul ins(%t, %c : memref<4x6xf32>, memref<6x3xf32>) outs(%o : memref<4x3xf32>)
  return %t : memref<4x6xf32>
}

// -----

// An input is written between: the first could not run where the last does.
// CHECK-LABEL: func.func @written
// CHECK-NOT: morello.chain
func.func @written(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<6x3xf32>, %d: memref<4x5xf32>, %o: memref<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  memref.copy %d, %a : memref<4x5xf32> to memref<4x5xf32>
  linalg.fill ins(%zero : f32) outs(%o : memref<4x3xf32>)
  linalg.matmul ins(%t, %c : memref<4x6xf32>, memref<6x3xf32>) outs(%o : memref<4x3xf32>)
  memref.dealloc %t : memref<4x6xf32>
  return
}

// -----

// What the second member reads is written between the two, as a mask is: it still runs before.
// CHECK-LABEL: func.func @made_late
// CHECK: call @morello_map{{.*}}
// CHECK: call @morello_chain_0(
func.func @made_late(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<6x3xf32>, %d: memref<6x3xf32>, %o: memref<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.exp ins(%d : memref<6x3xf32>) outs(%c : memref<6x3xf32>)
  linalg.fill ins(%zero : f32) outs(%o : memref<4x3xf32>)
  linalg.matmul ins(%t, %c : memref<4x6xf32>, memref<6x3xf32>) outs(%o : memref<4x3xf32>)
  memref.dealloc %t : memref<4x6xf32>
  return
}

// -----

// The output is an input: the first tile's result would be read as input of the second's.
// CHECK-LABEL: func.func @overlaps
// CHECK-NOT: morello.chain
func.func @overlaps(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<6x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.fill ins(%zero : f32) outs(%a : memref<4x5xf32>)
  linalg.matmul ins(%t, %c : memref<4x6xf32>, memref<6x5xf32>) outs(%a : memref<4x5xf32>)
  memref.dealloc %t : memref<4x6xf32>
  return
}

// -----

// Rows are not the same: the second product has the columns of the first as its rows.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: morello.chain
func.func @transposed(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<4x3xf32>, %o: memref<6x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.fill ins(%zero : f32) outs(%o : memref<6x3xf32>)
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%t, %c : memref<4x6xf32>, memref<4x3xf32>) outs(%o : memref<6x3xf32>)
  memref.dealloc %t : memref<4x6xf32>
  return
}

// -----

// A mask of i1 is read as bytes; symbols that are no functions stay.
// CHECK: memref.global "private" constant @kept
// CHECK-LABEL: func.func @masked
// CHECK: call @morello_chain_0({{.*}}: (memref<f32>, memref<f32>, memref<i1>, memref<f32>, memref<f32>) -> ()
// CHECK: func.func private @morello_chain_0
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : memref<i1> to memref<i8>
// CHECK: t1 = Map([1, 4, 6], (i8, GL, [0, 6, 1]), (f32, GL, [0, 6, 1]), (f32, GL, [0, 6, 1])
memref.global "private" constant @kept : memref<2xf32> = dense<1.0>
#id2 = affine_map<(m, n) -> (m, n)>
func.func @masked(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %mask: memref<4x6xi1>, %c: memref<6x3xf32>, %o: memref<4x3xf32>) -> memref<2xf32> {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4x6xf32>
  %u = memref.alloc() : memref<4x6xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4x6xf32>)
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%t : memref<4x6xf32>)
  linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%mask, %t : memref<4x6xi1>, memref<4x6xf32>) outs(%u : memref<4x6xf32>) {
  ^bb0(%p: i1, %x: f32, %y: f32):
    %s = arith.select %p, %x, %zero : f32
    linalg.yield %s : f32
  }
  linalg.fill ins(%zero : f32) outs(%o : memref<4x3xf32>)
  linalg.matmul ins(%u, %c : memref<4x6xf32>, memref<6x3xf32>) outs(%o : memref<4x3xf32>)
  memref.dealloc %t : memref<4x6xf32>
  memref.dealloc %u : memref<4x6xf32>
  %g = memref.get_global @kept : memref<2xf32>
  return %g : memref<2xf32>
}
