// Where operands come from memory, the rows of rhs that a step reads are as far apart as there are steps: each is a stream
// of its own, without an end.
// RUN: morello-opt %s --morello-apply=target=avx2 --split-input-file | FileCheck %s

// Four steps of eight rows; the results are those of the fourth.
// CHECK-LABEL: func.func @far(
// CHECK:         scf.for %[[K:.*]] = %c0 to %c4 step %c1
// CHECK:           memref.subview %{{.*}}[0, 0, %[[K]]] [1, 1, 8] [1, 1, 4] : {{.*}} to memref<1x1x8xf32, strided<[32, 32, 4], offset: ?>>
// CHECK:           memref.subview %{{.*}}[0, %[[K]], 0] [1, 8, 1024] [1, 4, 1] : {{.*}} to memref<1x8x1024xf32, strided<[32768, 4096, 1], offset: ?>>
// CHECK:           arith.cmpi eq, %[[K]], %c3
// CHECK:           arith.cmpi eq, %[[K]], %c0
func.func @far(%a: memref<1x1x32xf32>, %b: memref<1x32x1024xf32>, %c: memref<1x1x1024xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 32, 1024>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial, far,
    then = "y = max(x0, 0.0:f32)", then_inputs = ["f32"],
    schedule = ["to_accum", "move lhs to L2", "move out to L2", "split k by 8:", "    move rhs to L2", "    move lhs to L1",
      "    move out to L1", "    tile n by 16:", "        move out to VRF", "        kernel broadcast_fma"]
  } : (memref<1x1x32xf32>, memref<1x32x1024xf32>, memref<1x1x1024xf32>) -> ()
  return
}

// -----

// Rows with gaps between them are no endless streams.
// CHECK-LABEL: func.func @gaps(
// CHECK:         scf.for %[[K:.*]] = %c0 to %c32 step %c8
// CHECK:           memref.subview %{{.*}}[0, %[[K]], 0] [1, 8, 1024] [1, 1, 1]
func.func @gaps(%a: memref<1x1x32xf32>, %b: memref<1x32x1024xf32, strided<[65536, 2048, 1]>>, %c: memref<1x1x1024xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 32, 1024>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, s8192)", "(f32, GL, row_major)"], serial, far,
    schedule = ["move lhs to L2", "move out to L2", "split k by 8:", "    move rhs to L2", "    move lhs to L1",
      "    move out to L1", "    tile n by 16:", "        move out to VRF", "        kernel broadcast_fma"]
  } : (memref<1x1x32xf32>, memref<1x32x1024xf32, strided<[65536, 2048, 1]>>, memref<1x1x1024xf32>) -> ()
  return
}

// -----

// Nor does it matter in caches.
// CHECK-LABEL: func.func @near(
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c8
func.func @near(%a: memref<1x1x32xf32>, %b: memref<1x32x1024xf32>, %c: memref<1x1x1024xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 32, 1024>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2", "move out to L2", "split k by 8:", "    move rhs to L2", "    move lhs to L1",
      "    move out to L1", "    tile n by 16:", "        move out to VRF", "        kernel broadcast_fma"]
  } : (memref<1x1x32xf32>, memref<1x32x1024xf32>, memref<1x1x1024xf32>) -> ()
  return
}
