// RUN: not morello-opt %s --split-input-file --morello-search 2>&1 | FileCheck %s

// CHECK: :[[@LINE+2]]:3: error: {{.*}}takes 3 operands, x0, x1, y, not 4
func.func @too_many(%a: memref<1x2x2xf32>) {
  "morello.chain4"(%a, %a, %a, %a) {
    function = "Chain", dims = array<i64: 1, 2>, serial,
    stages = ["t0 = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x1"]
  } : (memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}attribute 'stages': stage 2: t0 is a dense [1, 2, 3]
func.func @does_not_fit(%a: memref<1x2x2xf32>, %b: memref<1x2x3xf32>, %c: memref<1x2x2xf32>) {
  "morello.chain4"(%a, %b, %c, %a) {
    function = "Chain", dims = array<i64: 1, 2>, serial,
    stages = ["t0 = Matmul([1, 2, 2, 3], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x2"]
  } : (memref<1x2x2xf32>, memref<1x2x3xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}attribute 'dims': the stages make it [1, 2], not [2, 2]
func.func @dims(%a: memref<1x2x2xf32>) {
  "morello.chain3"(%a, %a, %a) {
    function = "Chain", dims = array<i64: 2, 2>, serial,
    stages = ["t0 = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x1"]
  } : (memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}operand x1: expected a memref of [1, 2, 2], not memref<2x2xf32>
func.func @rank(%a: memref<1x2x2xf32>, %b: memref<2x2xf32>) {
  "morello.chain3"(%a, %b, %a) {
    function = "Chain", dims = array<i64: 1, 2>, serial,
    stages = ["t0 = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([1, 2, 2, 2], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x1"]
  } : (memref<1x2x2xf32>, memref<2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}attribute 'function': expected Chain, not Softmax
func.func @function(%a: memref<1x2x2xf32>) {
  "morello.chain3"(%a, %a, %a) {function = "Softmax", dims = array<i64: 1, 2>, serial, stages = ["x"]}
    : (memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}unknown attribute 'limit'
// CHECK: error: {{.*}}attribute 'stages': expected an array of strings, not 3
func.func @stages(%a: memref<1x2x2xf32>) {
  "morello.chain3"(%a, %a, %a) {function = "Chain", dims = array<i64: 1, 2>, serial, limit, stages = 3 : i64}
    : (memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}

// -----

// CHECK: error: {{.*}}attribute 'stages': "\FF" is not UTF-8
func.func @no_text(%a: memref<1x2x2xf32>) {
  "morello.chain3"(%a, %a, %a) {function = "Chain", dims = array<i64: 1, 2>, serial, stages = ["\FF"]}
    : (memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>) -> ()
  return
}
