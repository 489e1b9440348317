// The cheapest schedules are timed on this machine; the winner is remembered, and only read by who measures.
// RUN: rm -f %t.sqlite
// RUN: morello-opt %s --morello-search='measure top-k=3 timing memo=%t.sqlite' --remarks -o %t.first.mlir 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: FileCheck %s --input-file=%t.first.mlir
// RUN: morello memo stats --memo %t.sqlite | FileCheck %s --check-prefix=STATS
// RUN: morello-opt %s --morello-search='measure top-k=2 timing memo=%t.sqlite' --remarks -o %t.again.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: FileCheck %s --input-file=%t.again.mlir
// RUN: morello-opt %s --morello-search=memo=%t.sqlite | FileCheck %s --check-prefix=PLAIN
// RUN: morello-opt %t.first.mlir --morello-apply | FileCheck %s --check-prefix=APPLIED

// FIRST: remark: Matmul({{.*}}): {{[0-9,]+}} cycles predicted (measured,
// FIRST: remark: measured: {{.*}} us; to win, a schedule has to be {{[0-9.]+}}% faster
// STATS: winners: 1 measured, 1 for this machine
// AGAIN: remark: measured: {{.*}} us (remembered)
// PLAIN: source = "{{search|memo|shipped}}"
// APPLIED-NOT: morello.spec

// CHECK: morello.measured_s = {{[-+0-9.eE]+}} : f64, morello.model_s = {{[-+0-9.eE]+}} : f64
// CHECK-NOT: morello.alternatives
// CHECK-SAME: source = "measured"
func.func @f(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
