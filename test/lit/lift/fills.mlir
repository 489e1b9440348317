// A zero fill of exactly the accumulator, untouched until the contraction, makes a Matmul; any doubt keeps it.
// RUN: morello-opt %s --morello-lift=nests=false --split-input-file | FileCheck %s

// CHECK-LABEL: func @covered
// CHECK-NOT: linalg.fill
// CHECK: call @morello_matmul_1x4x4x4_f32(
// CHECK: function = "Matmul"
func.func @covered(%a: memref<4x4xf32>, %x: memref<4x4xf32>, %i: index) -> memref<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<4x4xf32>
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  memref.store %z, %x[%i, %i] : memref<4x4xf32>
  %y = memref.alloc() : memref<4x4xf32>
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32>
  %d = memref.cast %c : memref<4x4xf32> to memref<?x?xf32>
  linalg.matmul ins(%a, %y : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return %c : memref<4x4xf32>
}

// -----

// Two fills before two contractions: each finds its own.
// CHECK-LABEL: func @interleaved
// CHECK-NOT: linalg.fill
// CHECK: call @morello_matmul_1x4x4x4_f32(
// CHECK: call @morello_matmul_1x4x4x4_f32(
func.func @interleaved(%a: memref<4x4xf32>, %c: memref<4x4xf32>, %d: memref<4x4xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  linalg.fill ins(%z : f32) outs(%d : memref<4x4xf32>)
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%d : memref<4x4xf32>)
  return
}

// -----

// Read in between, through a view.
// CHECK-LABEL: func @read
// CHECK: linalg.fill
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
func.func @read(%a: memref<4x4xf32>, %c: memref<4x4xf32>, %r: memref<2x4xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  %v = memref.subview %c[0, 0] [2, 4] [1, 1] : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1]>>
  memref.copy %v, %r : memref<2x4xf32, strided<[4, 1]>> to memref<2x4xf32>
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}

// -----

// Written in between, in a nested region.
// CHECK-LABEL: func @written
// CHECK: linalg.fill
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
func.func @written(%a: memref<4x4xf32>, %c: memref<4x4xf32>, %p: i1, %i: index) {
  %z = arith.constant 0.0 : f32
  %o = arith.constant 1.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  scf.if %p {
    memref.store %o, %c[%i, %i] : memref<4x4xf32>
  }
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}

// -----

// A call may do anything.
// CHECK-LABEL: func @called
// CHECK: linalg.fill
// CHECK: call @other
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
func.func private @other()
func.func @called(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x4xf32>)
  call @other() : () -> ()
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}

// -----

// The fill of more than the accumulator, and a fill outside of the loop.
// CHECK-LABEL: func @more_than_the_accumulator
// CHECK: linalg.fill
// CHECK: call @morello_matmul_accum_1x4x4x4_f32(
// CHECK: linalg.fill
// CHECK: scf.for
// CHECK: call @morello_matmul_accum_1x4x4x4_f32_1(
func.func @more_than_the_accumulator(%a: memref<4x4xf32>, %c: memref<8x4xf32>, %d: memref<4x4xf32>, %n: index) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  linalg.fill ins(%z : f32) outs(%c : memref<8x4xf32>)
  %v = memref.subview %c[4, 0] [4, 4] [1, 1] : memref<8x4xf32> to memref<4x4xf32, strided<[4, 1], offset: 16>>
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%v : memref<4x4xf32, strided<[4, 1], offset: 16>>)
  linalg.fill ins(%z : f32) outs(%d : memref<4x4xf32>)
  scf.for %i = %c0 to %n step %c1 {
    linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%d : memref<4x4xf32>)
  }
  return
}

// -----

// An outer reduction loop needs the zeros.
// CHECK-LABEL: func @outer_reduction
// CHECK: linalg.fill
// CHECK: call @morello_matmul_accum_1x4x5x6_f32(
func.func @outer_reduction(%a: memref<3x4x5xf32>, %b: memref<3x5x6xf32>, %c: memref<4x6xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%c : memref<4x6xf32>)
  linalg.batch_reduce_matmul ins(%a, %b : memref<3x4x5xf32>, memref<3x5x6xf32>) outs(%c : memref<4x6xf32>)
  return
}
