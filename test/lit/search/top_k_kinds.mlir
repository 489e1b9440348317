// Nests and chains have alternatives, too; those given are kept.
// RUN: morello-opt %s --morello-search='target=avx2 top-k=3' | FileCheck %s
// RUN: morello-opt %s --morello-search='target=avx2 top-k=3' --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: morello-opt %s --morello-search=target=avx2 | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func @nest
// CHECK: cost = [[BEST:[0-9]+]] : i64
// CHECK-SAME: morello.alternatives = [{cost = [[BEST]] : i64, schedule = ["reciprocal", {{[^]]*}}]},
// CHECK-SAME: {cost = {{[0-9]+}} : i64, schedule = [{{[^]]*}}]}, {cost = {{[0-9]+}} : i64, schedule = [{{[^]]*}}]}]
// REMARK: remark: schedule 2: {{[0-9,]+}} cycles, +{{[0-9.]+}}%
// REMARK: remark: schedule 3:
// REMARK: remark: Chain(
// REMARK: remark: schedule 3:
// REMARK-NOT: remark: schedule 4
// PLAIN-NOT: morello.alternatives
func.func @nest(%x: memref<24000xf32>, %y: memref<24000xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 8, 3000>, scan = array<i64: 1>, serial,
    operands = ["(f32, GL, [3000, 1])", "(f32, GL, [3000, 1])"], body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
  } : (memref<24000xf32>, memref<24000xf32>) -> ()
  return
}

// CHECK-LABEL: func @given
// CHECK-NOT: morello.alternatives
// CHECK: source = "manual"
func.func @given(%x: memref<24000xf32>, %y: memref<24000xf32>) {
  "morello.nest2"(%x, %y) {
    function = "Softmax", dims = array<i64: 8, 3000>, scan = array<i64: 1>, serial, schedule = ["reciprocal", "?"],
    operands = ["(f32, GL, [3000, 1])", "(f32, GL, [3000, 1])"], body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)"
  } : (memref<24000xf32>, memref<24000xf32>) -> ()
  return
}

// CHECK-LABEL: func @chain
// CHECK: cost = [[CHAIN:[0-9]+]] : i64
// CHECK-SAME: morello.alternatives = [{cost = [[CHAIN]] : i64, schedule = ["tile b by 1:", {{[^}]*}}]},
// CHECK-SAME: {cost = {{[0-9]+}} : i64, schedule = [
// CHECK-SAME: source = "{{search|memo}}"
func.func @chain(%a: memref<3x5x5xf32>, %b: memref<3x5x13xf32>, %c: memref<3x13x4xf32>, %o: memref<3x5x4xf32>) {
  "morello.chain4"(%a, %b, %c, %o) {
    function = "Chain", dims = array<i64: 3, 5>, serial,
    stages = ["t0 = Matmul([3, 5, 5, 13], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of x0, x1",
              "y = Matmul([3, 5, 13, 4], (f32, GL, row_major), (f32, GL, row_major), (f32, GL, row_major), serial) of t0, x2"]
  } : (memref<3x5x5xf32>, memref<3x5x13xf32>, memref<3x13x4xf32>, memref<3x5x4xf32>) -> ()
  return
}
