// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 --verify-diagnostics

func.func @step(%a: memref<1x4x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x4x4xf32>) {
  // expected-error @below {{kernel scalar: lhs must be in L2 or L1, not GL}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 4, 4>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["kernel scalar"]
  } : (memref<1x4x4xf32>, memref<1x4x4xf32>, memref<1x4x4xf32>) -> ()
  return
}

// -----

func.func @text(%a: memref<1x4x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x4x4xf32>) {
  // expected-error @below {{schedule line 1: 'kernal scalar': unknown step}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 4, 4>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["kernal scalar"]
  } : (memref<1x4x4xf32>, memref<1x4x4xf32>, memref<1x4x4xf32>) -> ()
  return
}

// -----

// A layout that the memref has, and that no lowering does: the packed dim is not next to slowest.
func.func @layout(%a: memref<4x4x3x4xf32>, %b: memref<4x3x5xf32>, %c: memref<4x16x5xf32>) {
  // expected-error @below {{layout [m/4, b, k, m%4]: only panels along one of the last two dims}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 4, 16, 3, 5>,
    operands = ["(f32, GL, [m/4, b, k, m%4])", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["?"]
  } : (memref<4x4x3x4xf32>, memref<4x3x5xf32>, memref<4x16x5xf32>) -> ()
  return
}

// -----

func.func @nothing_in_registers(%a: memref<1x2x4xf32>, %b: memref<1x4x8xf32>) -> (vector<8xf32>, vector<8xf32>) {
  // expected-error @below {{to_accum: Matmul cannot have its output in registers: nothing is in them yet}}
  %r:2 = "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, VRF, row_major)"], serial,
    schedule = ["to_accum", "kernel broadcast_fma"]
  } : (memref<1x2x4xf32>, memref<1x4x8xf32>) -> (vector<8xf32>, vector<8xf32>)
  return %r#0, %r#1 : vector<8xf32>, vector<8xf32>
}

// -----

func.func @dtypes(%a: memref<1x2x4xf32>, %b: memref<1x4x8xf64>, %c: memref<1x2x8xf32>) {
  // expected-error @below {{has no kernels for the dtypes of}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(f32, L1, row_major)", "(f64, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["kernel scalar"]
  } : (memref<1x2x4xf32>, memref<1x4x8xf64>, memref<1x2x8xf32>) -> ()
  return
}

// -----

func.func @narrower(%a: memref<1x2x4xf32>, %b: memref<1x4x8xf32>, %c: memref<1x2x8xf32>) {
  // expected-error @below {{move rhs to L2 as [b, n/8, k, n%8] bf16: rhs is f32, whose values bf16 does not hold}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/8, k, n%8] bf16", "?"]
  } : (memref<1x2x4xf32>, memref<1x4x8xf32>, memref<1x2x8xf32>) -> ()
  return
}

// -----

func.func @groups_of_two_bytes(%a: memref<1x2x4xi8>, %b: memref<1x4x8xi8>, %c: memref<1x2x8xi32>) {
  // expected-error @below {{move rhs to L2 as [b, n/8, k/2, n%8, k%2]: groups have 4 bytes, not 2}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/8, k/2, n%8, k%2]", "?"]
  } : (memref<1x2x4xi8>, memref<1x4x8xi8>, memref<1x2x8xi32>) -> ()
  return
}

// -----

func.func @partial_sums_in_a_narrow_output(%a: memref<1x2x4xbf16>, %b: memref<1x4x8xbf16>, %c: memref<1x2x8xbf16>) {
  // expected-error @below {{split k by 2: the output is rounded to bf16: only a kernel may add up along k}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(bf16, GL, row_major)"], serial,
    schedule = ["split k by 2:", "  ?"]
  } : (memref<1x2x4xbf16>, memref<1x4x8xbf16>, memref<1x2x8xbf16>) -> ()
  return
}

// -----

func.func @not_its_types(%a: memref<1x2x4xf32>, %b: memref<1x1x2x8x2xbf16>, %c: memref<1x2x8xf32>) {
  // expected-error @below {{it does not take f32 x bf16}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 8>,
    operands = ["(f32, L1, row_major)", "(bf16, L1, [b, n/8, k/2, n%8, k%2])", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel maddwd"]
  } : (memref<1x2x4xf32>, memref<1x1x2x8x2xbf16>, memref<1x2x8xf32>) -> ()
  return
}
