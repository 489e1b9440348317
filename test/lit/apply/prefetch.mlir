// The lines of a register tile are asked for before a k loop that is worth it. Rows that follow one another are one run of
// lines: 2 x 24 f32 are three, and one more where they start in the middle of one.
// RUN: morello-opt %s --morello-apply=target=avx2 --split-input-file | FileCheck %s

// CHECK-LABEL:   func.func @deep
// CHECK-COUNT-4: memref.prefetch {{.*}}, write, locality<3>, data
// CHECK-NOT:     memref.prefetch
func.func @deep(%a: memref<1x2x40xf32>, %b: memref<1x40x24xf32>, %c: memref<1x2x24xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 40, 24>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x40xf32>, memref<1x40x24xf32>, memref<1x2x24xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @shallow
// CHECK-NOT:   memref.prefetch
func.func @shallow(%a: memref<1x2x8xf32>, %b: memref<1x8x24xf32>, %c: memref<1x2x24xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 2, 8, 24>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x2x8xf32>, memref<1x8x24xf32>, memref<1x2x24xf32>) -> ()
  return
}

// -----

// Rows of rhs that lie far apart are asked for some steps ahead, but none beyond the last: here 144 / (4 * 2) = 18 steps, one
// line each, four steps an iteration.
// CHECK-LABEL:   func.func @strip
// CHECK:         scf.for %[[K:.*]] = %c0
// CHECK:           %[[AHEAD:.*]] = arith.addi %[[K]], %c18
// CHECK:           %[[LAST:.*]] = arith.minsi %[[AHEAD]], %{{.*}} : index
// CHECK:           arith.muli %[[LAST]], %c256
// CHECK-COUNT-4:   memref.prefetch {{.*}}, read, locality<3>, data
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func @strip(%a: memref<1x4x64xf32>, %b: memref<1x64x16xf32, strided<[16384, 256, 1]>>, %c: memref<1x4x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 64, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major, s1024)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x4x64xf32>, memref<1x64x16xf32, strided<[16384, 256, 1]>>, memref<1x4x16xf32>) -> ()
  return
}

// -----

// A single row leaves no room for more loads.
// CHECK-LABEL: func.func @row
// CHECK-NOT:   memref.prefetch {{.*}}, read
func.func @row(%a: memref<1x1x64xf32>, %b: memref<1x64x16xf32, strided<[16384, 256, 1]>>, %c: memref<1x1x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 64, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major, s1024)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x1x64xf32>, memref<1x64x16xf32, strided<[16384, 256, 1]>>, memref<1x1x16xf32>) -> ()
  return
}

// -----

// What follows on at once needs no asking.
// CHECK-LABEL: func.func @dense
// CHECK-NOT:   memref.prefetch {{.*}}, read
func.func @dense(%a: memref<1x4x64xf32>, %b: memref<1x64x16xf32>, %c: memref<1x4x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 64, 16>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "move out to VRF", "kernel broadcast_fma"]
  } : (memref<1x4x64xf32>, memref<1x64x16xf32>, memref<1x4x16xf32>) -> ()
  return
}

// -----

// Panels that were packed ahead come from memory: their lines are asked for many steps before they are used, those of the
// next panel too (there is slack behind the last one). Panels that were packed in the call are in a cache.
// CHECK-LABEL:   func.func private @morello_broadcast_fma_4x16
// CHECK:         %[[AHEAD:.*]] = arith.constant 96 : index
// CHECK:         scf.for %[[K:[^ ]*]] =
// CHECK:           %[[LAST:.*]] = arith.addi %[[K]], %[[AHEAD]] : index
// CHECK:           arith.muli %[[LAST]], %c16
// CHECK-COUNT-4:   memref.prefetch {{.*}}, read, locality<3>, data
// CHECK-NOT:       memref.prefetch
// CHECK-LABEL:   func.func private @morello_ahead_own_0_fill
func.func @ahead(%a: memref<1x4x64xf32>, %b: memref<1x64x32xf32>, %c: memref<1x4x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 64, 32>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["pack_ahead rhs as [b, n/16, k, n%16]", "move lhs to L2", "move rhs to L2", "move out to L2",
                "tile n by 16:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x4x64xf32>, memref<1x64x32xf32>, memref<1x4x32xf32>) -> ()
  return
}

// -----

// Where several tiles of rows read one panel each asks for a part of the next, a third of its 96 rows here (512 elements),
// and none for its own.
// CHECK-LABEL:   func.func @shared
// CHECK-DAG:     %[[PART:.*]] = arith.constant 512 : index
// CHECK-DAG:     %[[PANEL:.*]] = arith.constant 1552 : index
// CHECK:         scf.for
// CHECK:         scf.for %[[ROW:[^ ]*]] =
// CHECK:           %[[TILE:.*]] = arith.divui %[[ROW]], %c4 : index
// CHECK:           %[[PARTS:.*]] = arith.muli %[[TILE]], %[[PART]] : index
// CHECK:           %[[AT:.*]] = arith.addi %[[PARTS]], %[[PANEL]] : index
// CHECK:           func.call @[[KERNEL:morello_broadcast_fma_4x16_.*]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[AT]], %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, index, index, i1) -> ()
// CHECK:         func.func private @[[KERNEL]](%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: index, %[[ASK:.*]]: index, %{{.*}}: i1)
// CHECK:         scf.for %[[K:[^ ]*]] =
// CHECK:           %[[ITERATION:.*]] = arith.divui %[[K]], %c4 : index
// CHECK:           %[[DONE:.*]] = arith.muli %[[ITERATION]], %c32 : index
// CHECK:           arith.addi %[[ASK]], %[[DONE]] : index
// CHECK-COUNT-2:   memref.prefetch {{.*}}, read, locality<2>, data
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func @shared(%a: memref<1x12x96xf32>, %b: memref<1x96x32xf32>, %c: memref<1x12x32xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 96, 32>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["pack_ahead rhs as [b, n/16, k, n%16]", "move lhs to L2", "tile n by 16:", "  move rhs to L2",
                "  move out to L2", "  tile m by 4:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x12x96xf32>, memref<1x96x32xf32>, memref<1x12x32xf32>) -> ()
  return
}
