// A constant operand is packed ahead where that is cheaper than any use of it as it lies; what is not constant is not.
// RUN: morello-opt %s --morello-search=target=avx2 | FileCheck %s

// CHECK-LABEL: func @const
// CHECK: schedule = ["to_accum", "pack_ahead rhs as [b, n/{{16|24}}, k, n%{{16|24}}]", {{.*}}kernel broadcast_fma"]
func.func @const(%a: memref<1x4x32xf32>, %b: memref<1x32x48xf32, strided<[1536, 1, 32]>>, %c: memref<1x4x48xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 32, 48>,
    operands = ["(f32, GL, row_major)", "(f32, GL, col_major, const)", "(f32, GL, row_major)"], serial
  } : (memref<1x4x32xf32>, memref<1x32x48xf32, strided<[1536, 1, 32]>>, memref<1x4x48xf32>) -> ()
  return
}

// CHECK-LABEL: func @plain
// CHECK-NOT: pack_ahead
func.func @plain(%a: memref<1x4x32xf32>, %b: memref<1x32x48xf32, strided<[1536, 1, 32]>>, %c: memref<1x4x48xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 32, 48>,
    operands = ["(f32, GL, row_major)", "(f32, GL, col_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x4x32xf32>, memref<1x32x48xf32, strided<[1536, 1, 32]>>, memref<1x4x48xf32>) -> ()
  return
}
