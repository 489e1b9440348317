// RUN: not morello-opt %s --split-input-file 2>&1 | FileCheck %s

// What `then` says of the sums must fit the Spec, and its operands the output.

// CHECK: attribute 'then': body: unknown op 'twice'
func.func @op(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = twice(x0)", then_inputs = ["f32"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: attributes 'then' and 'then_inputs': one without the other
func.func @alone(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = exp(x0)"} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: attribute 'then': then: the body does not use x0, the sum
func.func @unused(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = 1.0:f32", then_inputs = ["f32"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: then: the body is elementwise: no sum
func.func @reduces(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = sum(x0)", then_inputs = ["f32"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: Matmul: the output is f32, and then gives i8
func.func @type(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = cast(x0, i8)", then_inputs = ["f32"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: MatmulAccum: an output of i8 holds no sums of i32 to add to
func.func @accumulates(%a: memref<1x8x8xi8>, %c: memref<1x8x8xi8>) {
  "morello.spec"(%a, %a, %c) {function = "MatmulAccum", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(i8, GL, row_major)"], then = "y = cast(x0, i8)", then_inputs = ["i32"]} : (memref<1x8x8xi8>, memref<1x8x8xi8>, memref<1x8x8xi8>) -> ()
  return
}

// -----

// CHECK: operand 3 (x1 of then): missing
func.func @missing(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %a, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = add(x0, x1)", then_inputs = ["f32", "(f32, [n])"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: operand 3 (x1 of then): the strides of memref<1x8x8xf32> do not fit the dims [n]
func.func @strides(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec4"(%a, %a, %c, %c) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = add(x0, x1)", then_inputs = ["f32", "(f32, [n])"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// -----

// CHECK: operand 3 (x1 of then): the sizes of memref<8xf32> are not [1, 8, 8]
func.func @sizes(%a: memref<1x8x8xf32>, %c: memref<1x8x8xf32>, %d: memref<8xf32>) {
  "morello.spec4"(%a, %a, %c, %d) {function = "Matmul", dims = array<i64: 1, 8, 8, 8>, serial, operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], then = "y = add(x0, x1)", then_inputs = ["f32", "(f32, [n])"]} : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>, memref<8xf32>) -> ()
  return
}
