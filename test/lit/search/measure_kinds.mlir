// Nests and chains are timed, and their winners remembered, as those of contractions are. Given schedules are kept.
// RUN: rm -f %t.sqlite
// RUN: morello-opt %s --morello-search='measure top-k=3 timing memo=%t.sqlite' --remarks -o %t.first.mlir 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: FileCheck %s --input-file=%t.first.mlir
// RUN: morello memo stats --memo %t.sqlite | FileCheck %s --check-prefix=STATS
// RUN: morello-opt %s --morello-search='measure top-k=2 timing memo=%t.sqlite' --remarks -o %t.again.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: FileCheck %s --input-file=%t.again.mlir
// RUN: morello-opt %s --morello-search=memo=%t.sqlite | FileCheck %s --check-prefix=PLAIN

// FIRST: remark: Softmax({{.*}}(measured,
// FIRST: remark: measured: {{.*}} us; to win, a schedule has to be {{[0-9.]+}}% faster
// FIRST: remark: Chain({{.*}}(measured,
// FIRST: remark: measured: {{.*}} us; to win, a schedule has to be {{[0-9.]+}}% faster
// STATS: winners: 2 measured, 2 for this machine
// AGAIN: remark: measured: {{.*}} us (remembered)
// AGAIN: remark: measured: {{.*}} us (remembered)
// PLAIN-NOT: source = "measured"

// CHECK-LABEL: func @nest
// CHECK: morello.measured_s = {{[-+0-9.eE]+}} : f64, morello.model_s = {{[-+0-9.eE]+}} : f64
// CHECK-SAME: source = "measured"
func.func @nest(%x: memref<24000xf32>, %y: memref<24000xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 8, 3000>, scan = array<i64: 1>, serial,
    operands = ["(f32, GL, [3000, 1])", "(f32, GL, [3000, 1])"], body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
  } : (memref<24000xf32>, memref<24000xf32>) -> ()
  return
}

// CHECK-LABEL: func @given
// CHECK-NOT: morello.measured_s
// CHECK: source = "manual"
func.func @given(%x: memref<24000xf32>, %y: memref<24000xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 8, 3000>, scan = array<i64: 1>, serial, schedule = ["reciprocal", "?"],
    operands = ["(f32, GL, [3000, 1])", "(f32, GL, [3000, 1])"], body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
  } : (memref<24000xf32>, memref<24000xf32>) -> ()
  return
}

// CHECK-LABEL: func @chain
// CHECK: source = "measured"
func.func @chain(%a: memref<3x5x5xf32>, %b: memref<3x5x13xf32>, %c: memref<3x13x4xf32>, %o: memref<3x5x4xf32>) {
  "morello.chain4"(%a, %b, %c, %o) {
    function = "Chain", dims = array<i64: 3, 5>, serial,
    stages = ["t0 = Matmul([3, 5, 5, 13], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([3, 5, 13, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x2"]
  } : (memref<3x5x5xf32>, memref<3x5x13xf32>, memref<3x13x4xf32>, memref<3x5x4xf32>) -> ()
  return
}
