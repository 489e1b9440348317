// RUN: morello-opt %s --pass-pipeline='builtin.module(func.func(convert-linalg-to-loops, canonicalize{top-down=false}), cse)' | FileCheck %s
// RUN: morello-opt %s --pass-pipeline 'builtin.module(func.func(convert-linalg-to-loops))' | FileCheck %s
// RUN: morello-opt --pass-pipeline='builtin.module()' < %s | FileCheck %s --check-prefix=SAME
// RUN: morello-opt --pass-pipeline='builtin.module(func.func())' < %s | FileCheck %s --check-prefix=SAME
// RUN: morello-opt - --pass-pipeline= < %s | FileCheck %s --check-prefix=SAME

// CHECK-LABEL: func.func @fill
// CHECK: scf.for
// CHECK: memref.store
// SAME-LABEL: func.func @fill
// SAME: linalg.fill
func.func @fill(%m: memref<4xf32>, %x: f32) {
  linalg.fill ins(%x : f32) outs(%m : memref<4xf32>)
  return
}
