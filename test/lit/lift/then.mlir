// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// What follows a contraction on memrefs: one Spec does it, where the results on the way are nobody else's.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// In place, with a bias along n.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: linalg
// CHECK: call @morello_matmul_1x8x8x16_f32_then
// CHECK-NOT: linalg
// CHECK: return
// CHECK: "morello.spec4"
// CHECK-SAME: function = "Matmul"
// CHECK-SAME: then = "y = max(add(x0, x1), 0.0:f32)", then_inputs = ["f32", "(f32, [n])"]
func.func @in_place(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>, %bias: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]} ins(%bias : memref<16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %y, %x : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// The output holds what the sums are added to.
// CHECK-LABEL: func.func @accumulates
// CHECK: "morello.spec"
// CHECK-SAME: function = "MatmulAccum"
// CHECK-SAME: then = "y = mul(x0, 2.0:f32)", then_inputs = ["f32"]
func.func @accumulates(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%c : memref<8x16xf32>) {
  ^bb0(%y: f32):
    %r = arith.mulf %y, %two : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Results go elsewhere, and what the sums are added to is an operand: its buffer is nobody else's.
// CHECK-LABEL: func.func @elsewhere
// CHECK: "morello.spec4"
// CHECK-SAME: function = "Matmul"
// CHECK-SAME: then = "y = mul(add(x0, x1), 2.0:f32)", then_inputs = ["f32", "(f32, [m, n])"]
func.func @elsewhere(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>, %d: memref<8x16xf32>) {
  %two = arith.constant 2.0 : f32
  %t = memref.alloc() : memref<8x16xf32>
  memref.copy %d, %t : memref<8x16xf32> to memref<8x16xf32>
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%t : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.mulf %x, %two : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x16xf32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// An op that broadcasts what the sums start from, and another contraction between the parts of the first.
// CHECK-LABEL: func.func @interleaved
// CHECK: call @morello_matmul_1x8x8x16_f32(
// CHECK: call @morello_matmul_1x8x8x16_f32_then(
// CHECK-NOT: linalg
// CHECK: return
func.func @interleaved(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>, %bias: memref<16xf32>, %e: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]} ins(%bias : memref<16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  linalg.fill ins(%zero : f32) outs(%e : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%e : memref<8x16xf32>)
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%c : memref<8x16xf32>) {
  ^bb0(%y: f32):
    %r = arith.maximumf %y, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// The same rows and columns in other shapes.
// CHECK-LABEL: func.func @reshaped
// CHECK: "morello.spec"
// CHECK-SAME: dims = array<i64: 1, 8, 8, 16>
// CHECK-SAME: then = "y = exp(x0)"
func.func @reshaped(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  %flat = memref.collapse_shape %c [[0, 1]] : memref<8x16xf32> into memref<128xf32>
  linalg.exp ins(%flat : memref<128xf32>) outs(%flat : memref<128xf32>)
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// A call between, of a function that is seen to reach nothing but its operands and a constant: it makes one of the extras.
// CHECK-LABEL: func.func @call_between
// CHECK: call @other
// CHECK: call @morello_matmul
// CHECK-NOT: linalg
// CHECK: return
// CHECK: then = "y = add(x0, x1)"
func.func @call_between(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %v: memref<16xf32>, %c: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x16xf32>
  %w = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%t : memref<8x16xf32>)
  func.call @other(%v, %w) : (memref<16xf32>, memref<16xf32>) -> ()
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %w : memref<8x16xf32>, memref<16xf32>) outs(%c : memref<8x16xf32>) {
  ^bb0(%x: f32, %z: f32, %y: f32):
    %r = arith.addf %x, %z : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x16xf32>
  memref.dealloc %w : memref<16xf32>
  return
}
memref.global "private" constant @ones : memref<16xf32> = dense<1.0>
func.func private @other(%v: memref<16xf32>, %w: memref<16xf32>) {
  %c = memref.get_global @ones : memref<16xf32>
  linalg.add ins(%v, %c : memref<16xf32>, memref<16xf32>) outs(%w : memref<16xf32>)
  return
}
