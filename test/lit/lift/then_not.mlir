// RUN: morello-opt %s --morello-lift=nests=false --split-input-file | FileCheck %s

// What follows a contraction and is no part of its Spec.

#id = affine_map<(d0, d1) -> (d0, d1)>

// The sums are read by somebody else.
// CHECK-LABEL: func.func @read
// CHECK: call @morello_matmul_1x8x8x16_f32(
// CHECK: linalg.exp
func.func @read(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %t: memref<8x16xf32>, %c: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%t : memref<8x16xf32>)
  linalg.exp ins(%t : memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return
}

// -----

// Between: an input changes; the sums are read.
// CHECK-LABEL: func.func @input_changes
// CHECK: call @morello_matmul_1x8x8x16_f32(
// CHECK: memref.store
// CHECK: linalg.exp
func.func @input_changes(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  memref.store %zero, %a[%i, %i] : memref<8x8xf32>
  linalg.exp ins(%c : memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return
}

// CHECK-LABEL: func.func @sums_read
// CHECK: call @morello_matmul_1x8x8x16_f32(
// CHECK: memref.load
// CHECK: linalg.exp
func.func @sums_read(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  %x = memref.load %c[%i, %i] : memref<8x16xf32>
  linalg.exp ins(%c : memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return %x : f32
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// Results overwrite an operand: blocks of it would be gone before they are read.
// CHECK-LABEL: func.func @overwrites
// CHECK: call @morello_matmul_1x8x8x8_f32(
// CHECK: linalg.generic
func.func @overwrites(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %d: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x8xf32>) outs(%d : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.addf %x, %y : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x8xf32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// An element of the result needs two of the sums.
// CHECK-LABEL: func.func @with_the_transpose
// CHECK: call @morello_matmul_1x8x8x8_f32(
// CHECK: linalg.generic
func.func @with_the_transpose(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %d: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %t : memref<8x8xf32>, memref<8x8xf32>) outs(%d : memref<8x8xf32>) {
  ^bb0(%x: f32, %z: f32, %y: f32):
    %r = arith.addf %x, %z : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x8xf32>
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A body that depends on the position; a reduction.
// CHECK-LABEL: func.func @position
// CHECK: call @morello_matmul_1x8x8x8_f32(
// CHECK: linalg.generic
func.func @position(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%c : memref<8x8xf32>) {
  ^bb0(%y: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %r = arith.addf %f, %y : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Calls of what is not seen, of what calls others, with the sums, and of what reaches a variable.
// CHECK-LABEL: func.func @calls
// CHECK-COUNT-4: linalg.generic
func.func @calls(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>, %d: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  func.call @elsewhere() : () -> ()
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.addf %x, %x : f32
    linalg.yield %r : f32
  }
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  func.call @outer(%d) : (memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.addf %x, %x : f32
    linalg.yield %r : f32
  }
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  func.call @inner(%t) : (memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.addf %x, %x : f32
    linalg.yield %r : f32
  }
  linalg.fill ins(%zero : f32) outs(%t : memref<8x8xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%t : memref<8x8xf32>)
  func.call @counts() : () -> ()
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %r = arith.addf %x, %x : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x8xf32>
  return
}
memref.global "private" @count : memref<8x8xf32>
func.func private @counts() {
  %c = memref.get_global @count : memref<8x8xf32>
  linalg.exp ins(%c : memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  return
}
func.func private @elsewhere()
func.func private @outer(%d: memref<8x8xf32>) {
  func.call @elsewhere() : () -> ()
  return
}
func.func private @inner(%d: memref<8x8xf32>) {
  linalg.exp ins(%d : memref<8x8xf32>) outs(%d : memref<8x8xf32>)
  return
}
