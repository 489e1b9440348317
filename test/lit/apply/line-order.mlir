// Lines of rhs whose rows are pages apart are read in the order in which they lie: each of the four k steps reads two lines,
// of two vectors each.
// RUN: morello-opt %s --morello-apply=target=avx2 --split-input-file | FileCheck %s

// CHECK-LABEL:   func.func @apart
// CHECK-COUNT-8: llvm.inline_asm has_side_effects "", "~{memory}"
// CHECK-NOT:     llvm.inline_asm
func.func @apart(%a: memref<1x2x4xf32>, %b: memref<1x4x32xf32, strided<[4096, 1024, 1]>>, %c: memref<1x2x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 2, 4, 32>,
    operands = ["(f32, L1, row_major)", "(f32, L2, row_major, s4096)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x32xf32, strided<[4096, 1024, 1]>>, memref<1x2x32xf32>) -> ()
  return
}

// -----

// Rows that are nearer may be read in any order.
// CHECK-LABEL: func.func @near
// CHECK-NOT:   llvm.inline_asm
func.func @near(%a: memref<1x2x4xf32>, %b: memref<1x4x16xf32, strided<[2048, 512, 1]>>, %c: memref<1x2x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 2, 4, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L2, row_major, s2048)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x16xf32, strided<[2048, 512, 1]>>, memref<1x2x16xf32>) -> ()
  return
}

// -----

// A multiply-add of a single row takes its vector from memory itself.
// CHECK-LABEL: func.func @alone
// CHECK-NOT:   llvm.inline_asm
func.func @alone(%a: memref<1x1x4xf32>, %b: memref<1x4x32xf32, strided<[4096, 1024, 1]>>, %c: memref<1x1x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 4, 32>,
    operands = ["(f32, L1, row_major)", "(f32, L2, row_major, s4096)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x1x4xf32>, memref<1x4x32xf32, strided<[4096, 1024, 1]>>, memref<1x1x32xf32>) -> ()
  return
}
