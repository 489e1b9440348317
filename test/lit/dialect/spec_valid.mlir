// What morello.spec allows; printing it is stable.
// RUN: morello-opt %s | FileCheck %s
// RUN: morello-opt %s | morello-opt | FileCheck %s
// RUN: morello-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @contiguous
func.func @contiguous(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  // CHECK: "morello.spec"(%{{.*}}, %{{.*}}, %{{.*}}) {cost = 123 : i64, dims = array<i64: 1, 4, 8, 16>, function = "MatmulAccum"
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    limits = {VRF = 16 : i64, L1 = 512 : i64, L2 = 8192 : i64},
    schedule = ["first line", "second line"], cost = 123 : i64, source = "search"
  } : (memref<4x8xf32>, memref<8x16xf32>, memref<4x16xf32>) -> ()
  return
}

// A transposed operand is a strided memref; unit dims do not matter.
// CHECK-LABEL: func.func @transposed
func.func @transposed(%a: memref<1x4x8xf64>, %b: memref<8x16xf64, strided<[1, 9]>>, %s: memref<8x16xf64, strided<[1, 8], offset: ?>>,
                      %c: memref<4x16xf64>) {
  // CHECK-COUNT-2: "morello.spec"
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f64, GL, row_major)", "(f64, L2, col_major)", "(f64, L1, row_major)"],
    schedule = "one line", source = "manual", some.other = 1
  } : (memref<1x4x8xf64>, memref<8x16xf64, strided<[1, 9]>>, memref<4x16xf64>) -> ()
  "morello.spec"(%a, %s, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 16>,
    operands = ["(f64, GL, row_major)", "(f64, GL, col_major)", "(f64, GL, row_major)"], serial
  } : (memref<1x4x8xf64>, memref<8x16xf64, strided<[1, 8], offset: ?>>, memref<4x16xf64>) -> ()
  return
}

// Packed panels, a strided row, a broadcast batch, a column of a larger matrix.
// CHECK-LABEL: func.func @layouts
func.func @layouts(%a: memref<2x4x8xf32, strided<[0, 100, 1]>>, %b: memref<2x3x8x6xf32>,
                   %c: memref<2x4x16xf32, strided<[128, 32, 2]>>) {
  // CHECK: "morello.spec"
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 2, 4, 8, 16>,
    operands = ["(f32, GL, row_major, s16)", "(f32, L2, [b, n/6, k, n%6])", "(f32, GL, row_major, gapped)"], serial
  } : (memref<2x4x8xf32, strided<[0, 100, 1]>>, memref<2x3x8x6xf32>, memref<2x4x16xf32, strided<[128, 32, 2]>>) -> ()
  return
}

// At register level the output is a bundle of vectors: rows times vectors of a row.
// CHECK-LABEL: func.func @registers
func.func @registers(%a: memref<2x8xf32>, %b: memref<8x12xf32>, %v: vector<8xf32>) {
  // CHECK: %{{.*}}:4 = "morello.spec"
  %0:4 = "morello.spec"(%a, %b, %v, %v, %v, %v) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 8, 12>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<2x8xf32>, memref<8x12xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
    -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  // What does not accumulate needs no value before.
  // CHECK: %{{.*}}:4 = "morello.spec"(%{{[^,]*}}, %{{[^,]*}}) {
  %1:4 = "morello.spec"(%a, %b) {
    function = "Matmul", dims = array<i64: 1, 2, 8, 12>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, VRF, row_major)"], serial
  } : (memref<2x8xf32>, memref<8x12xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
  return
}
