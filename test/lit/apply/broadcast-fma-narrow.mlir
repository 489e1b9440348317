// Elements of lhs that are narrower than sums. f16 are widened in all lanes at once: alone, LLVM would load each into a
// register that holds sums, and wait for these. bf16 are widened alone.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx512 | FileCheck %s

// CHECK-LABEL: func.func @halves
// CHECK:         %[[X:.*]] = memref.load {{.*}}xf16,
// CHECK:         %[[ALL:.*]] = vector.broadcast %[[X]] : f16 to vector<16xf16>
// CHECK:         arith.extf %[[ALL]] : vector<16xf16> to vector<16xf32>
// CHECK:         vector.fma
// CHECK-NOT:     arith.extf {{.*}} : f16 to f32
func.func @halves(%a: memref<1x2x4xf16>, %b: memref<1x4x16xf32>, %c: memref<1x2x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 16>,
    operands = ["(f16, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2", "move rhs to L2", "move out to L2", "move out to L1", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xf16>, memref<1x4x16xf32>, memref<1x2x16xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @bf16
// CHECK:         arith.extf {{.*}} : bf16 to f32
// CHECK:         vector.broadcast {{.*}} : f32 to vector<16xf32>
// CHECK-NOT:     vector<16xbf16>
func.func @bf16(%a: memref<1x2x4xbf16>, %b: memref<1x4x16xf32>, %c: memref<1x2x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 4, 16>,
    operands = ["(bf16, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2", "move rhs to L2", "move out to L2", "move out to L1", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x4xbf16>, memref<1x4x16xf32>, memref<1x2x16xf32>) -> ()
  return
}
