// What is left to upstream, and why. (The reasons that tensors share are tested with morello-group.)
// RUN: morello-opt %s --morello-lift --split-input-file --verify-diagnostics | FileCheck %s
// CHECK-NOT: morello

func.func @on_tensors(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %e: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  // expected-remark @below {{linalg.fill not lifted: it is on tensors: bufferize first}}
  %c = linalg.fill {morello.group = 0 : i64} ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-remark @below {{linalg.matmul not lifted: it is on tensors: bufferize first}}
  %0 = linalg.matmul {morello.group = 0 : i64} ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

func.func @dynamic_strides(%a: memref<4x5xf32, strided<[?, 1]>>, %b: memref<5x6xf32>, %c: memref<4x6xf32>) {
  // expected-remark @below {{the first input has dynamic strides}}
  linalg.matmul ins(%a, %b : memref<4x5xf32, strided<[?, 1]>>, memref<5x6xf32>) outs(%c : memref<4x6xf32>)
  return
}

// -----

func.func @dynamic_sizes(%a: memref<4x5xf32>, %b: memref<5x?xf32>, %c: memref<4x?xf32>) {
  // expected-remark @below {{the second input has dynamic sizes (memref<5x?xf32>)}}
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x?xf32>) outs(%c : memref<4x?xf32>)
  return
}

// -----

func.func @negative_strides(%a: memref<4x5xf32>, %b: memref<5xf32, strided<[-1], offset: 4>>, %c: memref<4xf32>) {
  // expected-remark @below {{the second input has negative strides}}
  linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32, strided<[-1], offset: 4>>) outs(%c : memref<4xf32>)
  return
}

// -----

func.func @no_strides(%a: memref<4x5xf32, affine_map<(i, j) -> (i floordiv 2, j)>>, %b: memref<5xf32>, %c: memref<4xf32>) {
  // expected-remark @below {{the first input has a layout without strides}}
  linalg.matvec ins(%a, %b : memref<4x5xf32, affine_map<(i, j) -> (i floordiv 2, j)>>, memref<5xf32>) outs(%c : memref<4xf32>)
  return
}

// -----

func.func @other_space(%a: memref<4x5xf32>, %b: memref<5xf32>, %c: memref<4xf32, 3>) {
  // expected-remark @below {{the output is in memory space 3}}
  linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32>) outs(%c : memref<4xf32, 3>)
  return
}

// -----

func.func @output_overlaps_itself(%a: memref<4x5xf32>, %b: memref<5x6xf32>, %c: memref<4x6xf32, strided<[1, 1]>>) {
  // expected-remark @below {{elements of the output overlap}}
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xf32>) outs(%c : memref<4x6xf32, strided<[1, 1]>>)
  return
}

// -----

gpu.module @device {
  func.func @f(%a: memref<4x5xf32>, %b: memref<5xf32>, %c: memref<4xf32>) {
    // expected-remark @below {{its function is not in a builtin.module}}
    linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32>) outs(%c : memref<4xf32>)
    return
  }
}

// -----

func.func @launch(%a: memref<4x5xf32>, %b: memref<5xf32>, %c: memref<4xf32>, %i: index) {
  gpu.launch blocks(%x, %y, %z) in (%nx = %i, %ny = %i, %nz = %i) threads(%s, %t, %u) in (%ns = %i, %nt = %i, %nu = %i) {
    // expected-remark @below {{it is inside 'gpu.launch'}}
    linalg.matvec ins(%a, %b : memref<4x5xf32>, memref<5xf32>) outs(%c : memref<4xf32>)
    gpu.terminator
  }
  return
}

// -----

// All three loops parallel: what upstream makes of it adds into the output in any order it likes.
func.func @declared(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) {
  // expected-remark @below {{linalg.generic not lifted: loop d2 is declared parallel and indexed as reduction}}
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

memref.global "private" @g : memref<4x4xf32> = uninitialized
memref.global "private" @h : memref<4x4xf32> = uninitialized
%a = memref.get_global @g : memref<4x4xf32>
%b = memref.get_global @h : memref<4x4xf32>
// expected-remark @below {{linalg.matmul not lifted: it is in no function}}
linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%b : memref<4x4xf32>)
