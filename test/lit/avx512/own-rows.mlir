// Tiles of few rows whose panels were packed ahead and come from the last-level cache ask for their own rows, 64 lines
// ahead: here 16 rows of four lines each, four rows an iteration. They end in the slack behind the last panel.
// RUN: morello-opt %s --morello-apply=target=avx512 --split-input-file | FileCheck %s

// CHECK-LABEL:   func.func @cached
// CHECK:         func.func private @morello_broadcast_fma_1x64_
// CHECK:           scf.for %[[K:.*]] = %c0
// CHECK:             %[[AHEAD:.*]] = arith.addi %[[K]], %c16
// CHECK-NOT:         arith.minsi
// CHECK:             arith.muli %[[AHEAD]], %c64
// CHECK-COUNT-16:    memref.prefetch {{.*}}, read, locality<3>, data
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.yield
func.func @cached(%a: memref<1x1x1024xf32>, %b: memref<1x1024x2048xf32>, %c: memref<1x1x2048xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 1024, 2048>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "pack_ahead rhs as [b, n/64, k, n%64]", "tile n by 64:", "  move rhs to L2", "  move lhs to L2",
                "  move out to L2", "  move lhs to L1", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x1x1024xf32>, memref<1x1024x2048xf32>, memref<1x1x2048xf32>) -> ()
  return
}

// -----

// What stays in L2 is read faster without.
// CHECK-LABEL: func.func @near
// CHECK:       func.func private @morello_broadcast_fma_1x64_
// CHECK-NOT:   memref.prefetch {{.*}}, read
func.func @near(%a: memref<1x1x256xf32>, %b: memref<1x256x512xf32>, %c: memref<1x1x512xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 256, 512>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "pack_ahead rhs as [b, n/64, k, n%64]", "tile n by 64:", "  move rhs to L2", "  move lhs to L2",
                "  move out to L2", "  move lhs to L1", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x1x256xf32>, memref<1x256x512xf32>, memref<1x1x512xf32>) -> ()
  return
}

// -----

// What comes from memory is no faster with it.
// CHECK-LABEL: func.func @memory
// CHECK:       func.func private @morello_broadcast_fma_1x64_
// CHECK-NOT:   memref.prefetch {{.*}}, read
func.func @memory(%a: memref<1x1x4096xf32>, %b: memref<1x4096x4096xf32>, %c: memref<1x1x4096xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 1, 4096, 4096>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial, far,
    schedule = ["to_accum", "pack_ahead rhs as [b, n/64, k, n%64]", "tile n by 64:", "  move rhs to L2", "  move lhs to L2",
                "  move out to L2", "  move lhs to L1", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x1x4096xf32>, memref<1x4096x4096xf32>, memref<1x1x4096xf32>) -> ()
  return
}
