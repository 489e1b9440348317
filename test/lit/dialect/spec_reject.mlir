// One rejection for every rule of the verifier about attributes; the message names the one at fault.
// RUN: morello-opt %s --split-input-file --verify-diagnostics

func.func @missing_function(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute "function" is expected but not provided}}
  "morello.spec"(%a, %b, %c) {
    dims = array<i64: 1, 4, 8, 16>, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @missing_dims(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute "dims" is expected but not provided}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @missing_operands(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute "operands" is expected but not provided}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @function_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'function': expected a string, not 3}}
  "morello.spec"(%a, %b, %c) {
    function = 3, dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @function_unknown(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'function': unknown function 'Matmull' (have Matmul, MatmulAccum}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmull", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dims_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'dims': expected array<i64: ...>, not [1, 4, 8, 16]}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = [1, 4, 8, 16],
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dims_width(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'dims': expected array<i64: ...>, not array<i32}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i32: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dims_count(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'dims': Matmul has 4 dims [b, m, k, n], not 3}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @dims_negative(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'dims': negative size in [1, -4, 8, 16]}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, -4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands': expected an array of strings, not "(f32, GL, row_major)"}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = "(f32, GL, row_major)", serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_element_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands': expected a string, not 1}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", 1, "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_count(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands': Matmul has 3 operands, not 2}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_dtype(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands', element 1 (rhs): unknown dtype 'f33'}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f33, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_memory(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands', element 2 (out): unknown memory 'L9'}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, L9, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @operands_layout(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'operands', element 0 (lhs): layout '[b, m, q]': unknown dimension 'q'}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, [b, m, q])", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @serial_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'serial': expected a unit attribute, not true}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial = true
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @far_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'far': expected a unit attribute, not 1}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], far = 1
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @limits_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'limits': expected a dictionary, not 16}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limits = 16
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @limits_amount_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'limits.VRF': expected an integer, not "many"}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limits = {VRF = "many"}
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @limits_bool(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'limits.VRF': expected an integer, not true}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limits = {VRF = true}
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @limits_memory(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'limits': bad limit GL=16}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limits = {GL = 16}
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @limits_negative(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'limits': bad limit VRF=-1}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limits = {VRF = -1}
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @schedule_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'schedule': expected a string, not 3}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], schedule = 3
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @schedule_line_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'schedule': expected a string, not 4}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], schedule = ["x", 4]
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @cost_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'cost': expected an integer, not 1.0}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], cost = 1.0
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @cost_negative(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'cost': -1 is negative}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], cost = -1
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @source_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'source': expected a string, not 1}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], source = 1
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @source_unknown(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'source': 'guess' is none of search, memo, shipped, measured, manual}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], source = "guess"
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @unknown_attribute(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{unknown attribute 'limts'}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], limts = {VRF = 16}
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @constants_kind(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'constants': expected a dictionary, not "w"}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>, constants = "w",
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @constants_value(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'constants.rhs': expected a string, not 1 : i64}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>, constants = {rhs = 1 : i64},
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// -----

func.func @constants_of_others(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // expected-error @+1 {{attribute 'constants': 'lhs' is no constant operand}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>, constants = {lhs = "w"},
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}
