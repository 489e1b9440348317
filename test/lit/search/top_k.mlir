// The cheapest schedules are listed on request, the optimum first; otherwise nothing changes.
// RUN: morello-opt %s --morello-search='target=avx2 top-k=3' | FileCheck %s
// RUN: morello-opt %s --morello-search='target=avx2 top-k=3' --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: morello-opt %s --morello-search=target=avx2 | FileCheck %s --check-prefix=PLAIN
// RUN: not morello-opt %s --morello-search='target=avx2 top-k=0' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not morello-opt %s --morello-search='target=avx2 top-k=-1 measure' 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not morello-opt %s --morello-search='target=avx2 top-k=many' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not morello-opt %s --pass-pipeline='builtin.module(morello-default{top-k=0})' 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: error: {{.*}}top-k must be at least 1, not 0
// LESS: error: {{.*}}top-k must be at least 1, not -1
// MANY: option 'top-k': 'many' is not an integer

// CHECK-LABEL: func @f
// CHECK: cost = [[BEST:[0-9]+]] : i64
// CHECK-SAME: morello.alternatives = [{cost = [[BEST]] : i64, schedule = ["to_accum", [[TEXT:[a-zA-Z0-9_ ",:]+]]]},
// CHECK-SAME: {cost = {{[0-9]+}} : i64, schedule = ["to_accum", {{[^]]*}}]}, {cost = {{[0-9]+}} : i64, schedule = ["to_accum", {{[^]]*}}]}]
// CHECK-SAME: schedule = ["to_accum", [[TEXT]]]
// REMARK: remark: schedule 2: {{[0-9,]+}} cycles, +{{[0-9.]+}}%
// REMARK: remark: schedule 3:
// REMARK-NOT: remark: schedule
// PLAIN-NOT: morello.alternatives
func.func @f(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// A schedule that is given is kept; there are no alternatives to it.
// CHECK-LABEL: func @given
// CHECK-NOT: morello.alternatives
// CHECK: source = "manual"
func.func @given(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>, schedule = ["to_accum", "tile m by 4:", "  ?"],
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
