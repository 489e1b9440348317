// RUN: morello-opt %s --morello-legalize-tosa | FileCheck %s

// Without TOSA nothing is touched, not even by canonicalisation.
// CHECK: arith.addf
func.func @other(%a: f32) -> f32 {
  %unused = arith.addf %a, %a : f32
  return %a : f32
}
