// A schedule written on the linalg op reaches the Spec, and the search fills its holes.
// RUN: morello-opt %s \
// RUN:   --pass-pipeline='builtin.module(morello-group,morello-bufferize,morello-lift,morello-search{target=avx2})' \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func private @morello_matmul_accum_1x8x16x32_f32
// CHECK: "morello.spec"
// CHECK-SAME: schedule = ["split k by 8:", "    move lhs to L2"
// CHECK-SAME: source = "manual"
func.func @f(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.matmul {morello.schedule = ["split k by 8:", "  move lhs to L2", "  ?"]}
    ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
