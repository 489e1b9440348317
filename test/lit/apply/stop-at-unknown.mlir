// RUN: not morello-opt %s --morello-apply="target=avx2 stop-at=lunch" 2>&1 | FileCheck %s
// RUN: echo 'module {}' | not morello-opt --morello-apply="target=avx2 stop-at=lunch" 2>&1 | FileCheck %s
// CHECK: error: '{{.*}}' op stop-at=lunch: expected a number of steps or one of to_accum, exchange, pack_ahead, tile, split, parallel, serial, move, pack, kernel

func.func @product(%a: memref<1x4x4xf32>, %b: memref<1x4x4xf32>, %c: memref<1x4x4xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 4, 4>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["kernel scalar"]
  } : (memref<1x4x4xf32>, memref<1x4x4xf32>, memref<1x4x4xf32>) -> ()
  return
}
