// What cannot be searched is an error at the op, and names the reason.
// RUN: morello-opt %s --split-input-file --morello-search=target=avx2 --verify-diagnostics
// RUN: not morello-opt %s --morello-search=target=z80 2>&1 | FileCheck %s
// CHECK: unknown target 'z80' (have host, host-exact, avx2, avx512, and CPUs: haswell,

func.func @dtype(%a: memref<1x8x8xi8>, %b: memref<1x8x8xi8>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{avx2 has no kernels for the dtypes of}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xi8>, memref<1x8x8xi8>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @no_room(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{no implementation fits the limits of}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>, limits = {L2 = 0 : i64},
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @illegal(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{split k by 4: only an accumulating function can be split along k: put to_accum above}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>, schedule = ["split k by 4:", "  ?"],
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
