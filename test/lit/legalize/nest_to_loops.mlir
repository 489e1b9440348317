// Nests as plain loops, whatever their schedules: an elementwise op and a reduction.
// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-lift,morello-spec-to-linalg)' | FileCheck %s

// CHECK-DAG: math.exp
// CHECK-DAG: scf.for {{.*}} iter_args
// CHECK-DAG: arith.addf
// CHECK-NOT: morello.nest
func.func @f(%x: memref<4x8xf32>, %o: memref<4xf32>, %y: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%o : memref<4xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) dimensions = [1]
  return
}
