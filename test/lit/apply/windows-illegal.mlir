// Steps that do not go with a window, named with the reason.
// RUN: morello-opt %s --morello-apply=target=avx2 --split-input-file --verify-diagnostics

func.func @between_lines(%a: memref<1x2x4x12xf32>, %b: memref<1x12x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{tile m by 6: m goes through a window in steps of 4: the size must be a multiple of it}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 12, 8>,
    operands = ["(f32, L1, row_major, m%4)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 6:", "    ?", "rest:", "    ?"]
  } : (memref<1x2x4x12xf32>, memref<1x12x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @several_lines(%a: memref<1x2x4x12xf32>, %b: memref<1x12x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{move out to VRF: m goes through several lines of a window}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 12, 8>,
    operands = ["(f32, L1, row_major, m%4)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4x12xf32>, memref<1x12x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @dot(%a: memref<1x4x3x12xf32>, %b: memref<1x36x2xf32, strided<[72, 1, 36]>>, %c: memref<1x4x2xf32>) {
  // expected-error @below {{kernel dot_fma: it does not step through a window along k}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 36, 2>,
    operands = ["(f32, L1, row_major, k%12)", "(f32, L1, col_major)", "(f32, L1, row_major)"], serial,
    schedule = ["kernel dot_fma"]
  } : (memref<1x4x3x12xf32>, memref<1x36x2xf32, strided<[72, 1, 36]>>, memref<1x4x2xf32>) -> ()
  return
}

// -----

func.func @shared_pack(%a: memref<1x2x4x12xf32>, %b: memref<1x12x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @below {{lhs has a window, which one thread packs: put serial above}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 12, 8>, threads = 2 : i64,
    operands = ["(f32, GL, row_major, m%4)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move lhs to GL as [b, m/6, k, m%6]", "?"]
  } : (memref<1x2x4x12xf32>, memref<1x12x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @groups(%a: memref<1x4x3x3xi16>, %b: memref<1x9x8xi16>, %c: memref<1x4x8xi32>) {
  // expected-error @below {{lhs has a window whose runs are not made of groups of 2}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 9, 8>,
    operands = ["(i16, GL, row_major, k%3)", "(i16, GL, row_major)", "(i32, GL, row_major)"], serial,
    schedule = ["move lhs to L2 as [b, m/4, k/2, m%4, k%2]", "?"]
  } : (memref<1x4x3x3xi16>, memref<1x9x8xi16>, memref<1x4x8xi32>) -> ()
  return
}

// -----

func.func @no_period(%a: memref<1x4x2xf32>, %b: memref<1x2x2x1001xf32, strided<[9000, 4000, 1010, 1]>>, %c: memref<1x4x2002xf32>) {
  // expected-error @below {{panels of 64 of rhs begin at too many places of its lines}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 2, 2002>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, n%1001)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/64, k, n%64]", "?"]
  } : (memref<1x4x2xf32>, memref<1x2x2x1001xf32, strided<[9000, 4000, 1010, 1]>>, memref<1x4x2002xf32>) -> ()
  return
}
