// One rejection for every rule of the verifier about operands and results; the message names the one at fault.
// RUN: morello-opt %s --split-input-file --verify-diagnostics

func.func @element_type(%a: memref<4x8xf32>, %b: memref<8x16xf64>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 1 (rhs): the element type f64 is not that of f32}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf64>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @not_a_memref(%a: tensor<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 0 (lhs): expected a memref, since it is in GL, not tensor<4x8xf32>}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (tensor<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dynamic_size(%a: memref<?x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 0 (lhs): memref<?x8xf32> does not have static sizes}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<?x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dynamic_stride(%a: memref<4x8xf32, strided<[?, 1]>>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 0 (lhs): memref<4x8xf32, strided<[?, 1]>> does not have static strides}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32, strided<[?, 1]>>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @no_strides(%a: memref<4x8xf32, affine_map<(d0, d1) -> (d0 floordiv 2, d1)>>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 0 (lhs): memref<4x8xf32, affine_map<(d0, d1) -> (d0 floordiv 2, d1)>> is not a strided memref}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32, affine_map<(d0, d1) -> (d0 floordiv 2, d1)>>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @sizes(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x15xf32>) {
  // expected-error @+1 {{operand 2 (out): the sizes of memref<4x15xf32> are not [1, 4, 16]}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x15xf32>) -> ()
  return
}

// -----

func.func @strides_order(%a: memref<4x8xf32>, %b: memref<8x16xf32, strided<[1, 8]>>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 1 (rhs): the strides of memref<8x16xf32, strided<[1, 8]>> do not follow the layout row_major}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32, strided<[1, 8]>>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @strides_unit(%a: memref<4x8xf32, strided<[16, 2]>>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 0 (lhs): the strides of memref<4x8xf32, strided<[16, 2]>> do not follow the layout row_major}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32, strided<[16, 2]>>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @too_few(%a: memref<4x8xf32>, %b: memref<8x16xf32>) {
  // expected-error @+1 {{operand 2 (out): missing}}
  "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>) -> ()
  return
}

// -----

func.func @too_many(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 3: Matmul takes no more operands}}
  "morello.spec"(%a, %b, %c, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @no_results(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{results: none expected, since out is in GL}}
  %r:1 = "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> (vector<8xf32>)
  return
}

// -----

func.func @bundle_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operands 2.. (out): expected 1-D vectors, since it is in VRF, not memref<4x16xf32>}}
  %r:8 = "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  return
}

// -----

func.func @bundle_rank(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: vector<4x16xf32>) {
  // expected-error @+1 {{operands 2.. (out): expected 1-D vectors, since it is in VRF, not vector<4x16xf32>}}
  %r:1 = "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, vector<4x16xf32>) -> (vector<4x16xf32>)
  return
}

// -----

func.func @bundle_element_type(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: vector<4xf64>) {
  // expected-error @+1 {{operands 2.. (out): the element type f64 is not that of f32}}
  %r:16 = "morello.spec"(%a, %b, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>) -> (vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>)
  return
}

// -----

func.func @bundle_size(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: vector<8xf32>) {
  // expected-error @+1 {{operands 2.. (out): expected 8 vectors vector<8xf32>, not 2}}
  %r:8 = "morello.spec"(%a, %b, %c, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, vector<8xf32>, vector<8xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  return
}

// -----

func.func @bundle_missing(%a: memref<4x8xf32>, %b: memref<8x16xf32>) {
  // expected-error @+1 {{operands 2.. (out): missing}}
  %r:8 = "morello.spec"(%a, %b) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  return
}

// -----

func.func @result_size(%a: memref<4x8xf32>, %b: memref<8x16xf32>) {
  // expected-error @+1 {{results (out): expected 8 vectors vector<8xf32>, not 1}}
  %r:1 = "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>) -> (vector<8xf32>)
  return
}

// -----

func.func @result_excess(%a: memref<4x8xf32>, %b: memref<8x16xf32>) {
  // expected-error @+1 {{results (out): expected 8 vectors, not 9}}
  %r:9 = "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  return
}

// -----

func.func @result_missing(%a: memref<4x8xf32>, %b: memref<8x16xf32>) {
  // expected-error @+1 {{results (out): missing}}
  "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>) -> ()
  return
}

// -----

func.func @result_type(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: vector<8xf32>) {
  // expected-error @+1 {{results (out): type vector<16xf32> differs from vector<8xf32>, the operand's}}
  %r:4 = "morello.spec"(%a, %b, %c, %c, %c, %c, %c, %c, %c, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
  return
}

// -----

func.func @sizes_transposed(%a: memref<4x8xf32>, %b: memref<16x8xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 1 (rhs): the sizes of memref<16x8xf32> are not [1, 8, 16]}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<16x8xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @sizes_packed(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 1 (rhs): the sizes of memref<8x16xf32> are not [1, 2, 8, 8]}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, [b, n/8, k, n%8])", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @strides_packed(%a: memref<4x8xf32>, %b: memref<2x8x8xf32, strided<[8, 16, 1]>>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{operand 1 (rhs): the strides of memref<2x8x8xf32, strided<[8, 16, 1]>> do not follow the layout}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, [b, n/8, k, n%8])", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<2x8x8xf32, strided<[8, 16, 1]>>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @window_shape(%a: memref<1x8x12xf32>, %b: memref<1x12x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @+1 {{operand 0 (lhs): the sizes of memref<1x8x12xf32> are not [1, 2, 4, 12]}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 12, 8>,
    operands = ["(f32, GL, row_major, m%4)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x12xf32>, memref<1x12x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

func.func @window_units(%a: memref<1x8x12xf32>, %b: memref<1x12x8xf32>, %c: memref<1x8x8xf32>) {
  // expected-error @+1 {{m=8 of lhs is no multiple of 3}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 12, 8>,
    operands = ["(f32, GL, row_major, m%3)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x12xf32>, memref<1x12x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
