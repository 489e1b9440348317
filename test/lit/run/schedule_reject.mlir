// A schedule by hand that is not legal is refused, never replaced by other code.
// RUN: not morello-run %s --check 2>&1 | FileCheck %s
// CHECK: schedule_reject.mlir:[[#@LINE+6]]:{{[0-9]+}}: error: {{.*}}tile m by 64: the size must be less than m=64
func.func @f(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  // The op with the schedule.
  %r = linalg.matmul {morello.schedule = ["to_accum", "tile m by 64:", "  ?"]}
    ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
