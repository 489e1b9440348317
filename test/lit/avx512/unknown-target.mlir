// A target that there is not: the message lists what there is.
// RUN: not morello-run %s --target z80 2>&1 | FileCheck %s
// CHECK: unknown target 'z80' (have host, host-exact, avx2, avx512, and CPUs: haswell,{{.*}} znver4,

func.func @f(%a: memref<4xf32>) {
  return
}
