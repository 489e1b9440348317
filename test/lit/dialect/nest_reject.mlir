// One rejection for every rule of the verifier of nests.
// RUN: morello-opt %s --split-input-file --verify-diagnostics

func.func @missing_body(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute "body" is expected but not provided}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @unknown(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{unknown attribute 'colour'}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial,
    colour = 1 : i64
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @body_text(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute 'body': body: unknown op 'foo'}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = foo(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @function(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute 'function': the body makes it a Reduce, not a Map}}
  "morello.nest2"(%a, %b) {
    function = "Map",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @scan(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute 'scan': [2] are not dims of [4, 8]}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 2>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @operand(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute 'operands', element 1: operand '(f32, GL)'}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL)"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @strides(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{output 0 varies along d0, and has no stride there}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [0, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @kind(%a: tensor<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{operand 0: expected a memref, not tensor<4x8xf32>}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (tensor<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @element(%a: memref<4x8xf32>, %b: memref<4xf64>) {
  // expected-error @+1 {{operand 1: the element type f64 is not f32}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf64>) -> ()
  return
}

// -----

func.func @dynamic(%a: memref<?x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{operand 0: memref<?x8xf32> does not have static sizes}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<?x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @short(%a: memref<3x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{operand 0: memref<3x8xf32> holds 24 elements, and 32 are reached}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<3x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @count(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{takes 1 operands, as many as attribute 'operands' has, not 2}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [1, 0])"],
    body = "y = sum(1.0:f32)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @cost(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{attribute 'cost': -1 is negative}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial,
    cost = -1 : i64
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}
