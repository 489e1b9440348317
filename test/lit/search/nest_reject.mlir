// What is not legal for a nest is an error at the op, and names the step and the reason.
// RUN: morello-opt %s --split-input-file --morello-search=target=avx2 --verify-diagnostics

func.func @illegal(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{tile d1 by 2: d1 is a scan dim}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial,
    schedule = "tile d1 by 2:\0A    ?"
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @pass(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{the body has no value 'z'}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 4, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial,
    schedule = ["rows vector d1:", "    pass z"]
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @empty(%a: memref<4x8xf32>, %b: memref<4xf32>) {
  // expected-error @+1 {{nothing to search: a size is 0}}
  "morello.nest2"(%a, %b) {
    function = "Reduce",
    dims = array<i64: 0, 8>,
    scan = array<i64: 1>,
    operands = ["(f32, GL, [8, 1])", "(f32, GL, [1, 0])"],
    body = "y = sum(x0)",
    serial
  } : (memref<4x8xf32>, memref<4xf32>) -> ()
  return
}
