// The optimum where there is no schedule; a given one is kept and its holes are filled; `force` replaces it.
// RUN: morello-opt %s --morello-search=target=avx2 | FileCheck %s
// RUN: morello-opt %s --morello-search='target=avx2 force=true' | FileCheck %s --check-prefix=FORCE

// CHECK-LABEL: func @none
// CHECK: cost = [[BEST:[0-9]+]] : i64
// CHECK-SAME: schedule = ["to_accum", {{.*}}"kernel broadcast_fma"]
// CHECK-SAME: source = "search"
func.func @none(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// CHECK-LABEL: func @hole
// CHECK-NOT: cost = [[BEST]] :
// CHECK: schedule = ["to_accum", "tile m by 4:", {{[^?]*}}kernel broadcast_fma"]
// CHECK-SAME: source = "manual"
// FORCE-LABEL: func @hole
// FORCE-NOT: "tile m by 4:"
// FORCE: source = "{{search|memo}}"
func.func @hole(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "tile m by 4:", "  ?"]
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// An equal goal is not searched twice.
// CHECK-LABEL: func @again
// CHECK: cost = [[BEST]] : i64
// CHECK-SAME: source = "memo"
func.func @again(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
