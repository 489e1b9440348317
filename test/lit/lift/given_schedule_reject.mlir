// Schedules written by hand that cannot be: a malformed attribute, text that does not parse, an illegal step.
// RUN: morello-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(morello-lift,morello-search{target=avx2})'

func.func @malformed(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %c: memref<8x32xf32>) {
  // expected-remark@+2 {{lifted}}
  // expected-error@+1 {{attribute 'morello.schedule' must be a string or an array of strings, not 7}}
  linalg.matmul {morello.schedule = 7} ins(%a, %b : memref<8x16xf32>, memref<16x32xf32>) outs(%c : memref<8x32xf32>)
  return
}

// -----

func.func @no_step(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %c: memref<8x32xf32>) {
  // expected-remark@+2 {{lifted}}
  // expected-error@+1 {{schedule line 1: 'fuse m': unknown step}}
  linalg.matmul {morello.schedule = "fuse m"}
    ins(%a, %b : memref<8x16xf32>, memref<16x32xf32>) outs(%c : memref<8x32xf32>)
  return
}

// -----

func.func @illegal(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %c: memref<8x32xf32>) {
  // expected-remark@+2 {{lifted}}
  // expected-error@+1 {{tile m by 16: the size must be less than m=8}}
  linalg.matmul {morello.schedule = ["tile m by 16:", "  ?"]}
    ins(%a, %b : memref<8x16xf32>, memref<16x32xf32>) outs(%c : memref<8x32xf32>)
  return
}
