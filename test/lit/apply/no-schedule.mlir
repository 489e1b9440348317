// Without a schedule a Spec is left alone, unless one is required; a hole is left to the search.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 | FileCheck %s
// RUN: morello-opt %s --split-input-file --morello-apply="target=avx2 require-schedule" --verify-diagnostics

// CHECK-LABEL: func.func @bare
// CHECK:         "morello.spec"(%arg0, %arg1, %arg2)
func.func @bare(%a: memref<1x4x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x4x4xf32>) {
  // expected-error @below {{has no schedule: run morello-search before}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 4, 4>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x4x4xf32>, memref<1x4x4xf32>, memref<1x4x4xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @hole
// CHECK:         scf.for %{{.*}} = %c0 to %c4 step %c2
// CHECK:           "morello.spec"({{.*}}) {dims = array<i64: 1, 2, 4, 4>, function = "Matmul", {{.*}}schedule = ["to_accum", "?"]
func.func @hole(%a: memref<1x4x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x4x4xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 4, 4>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "tile m by 2:", "  ?"]
  } : (memref<1x4x4xf32>, memref<1x4x4xf32>, memref<1x4x4xf32>) -> ()
  return
}
