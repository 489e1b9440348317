// Tiles that come one after the other along a few long rows of rhs, in memory and in place, ask for these rows, 16 lines
// further on: 512 elements of bf16. 8 rows of two lines each.
// RUN: morello-opt %s --morello-apply=target=avx512 --split-input-file | FileCheck %s

// CHECK-LABEL:   func.func @memory
// CHECK:         func.func private @morello_broadcast_fma_4x8x64_
// CHECK:           memref.prefetch %[[ROWS:.*]][%c512], read, locality<3>, data
// CHECK-NEXT:      memref.prefetch %[[ROWS]][%c544], read
// CHECK-NEXT:      memref.prefetch %[[ROWS]][%c131584], read
// CHECK-COUNT-13:  memref.prefetch %[[ROWS]]
// CHECK-NOT:       memref.prefetch
func.func @memory(%a: memref<1x4x64xbf16>, %b: memref<1x64x16384xbf16>, %c: memref<1x4x16384xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 64, 16384>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"], serial, far,
    schedule = ["move lhs to L2", "move out to L2", "split k by 8:", "  move rhs to L2", "  move lhs to L1",
                "  tile n by 64:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x4x64xbf16>, memref<1x64x16384xbf16>, memref<1x4x16384xf32>) -> ()
  return
}

// -----

// Operands that fit the last-level cache: only lines of the tile itself are asked for.
// CHECK-LABEL: func.func @cached
// CHECK:       func.func private @morello_broadcast_fma_4x8x64_
// CHECK-NOT:     memref.prefetch %{{.*}}[%c512]
// CHECK:         memref.prefetch %{{.*}}[%c0], read, locality<3>, data
// CHECK-NOT:     memref.prefetch %{{.*}}[%c512]
func.func @cached(%a: memref<1x4x64xbf16>, %b: memref<1x64x16384xbf16>, %c: memref<1x4x16384xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 64, 16384>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2", "move out to L2", "split k by 8:", "  move rhs to L2", "  move lhs to L1",
                "  tile n by 64:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x4x64xbf16>, memref<1x64x16384xbf16>, memref<1x4x16384xf32>) -> ()
  return
}

// -----

// Tiles of one row, whose loads leave no room, ask for nothing.
// CHECK-LABEL: func.func @single
// CHECK-NOT:   memref.prefetch {{.*}}, read
func.func @single(%a: memref<1x1x64xbf16>, %b: memref<1x64x16384xbf16>, %c: memref<1x1x16384xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 64, 16384>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"], serial, far,
    schedule = ["move lhs to L2", "move out to L2", "split k by 8:", "  move rhs to L2", "  move lhs to L1",
                "  tile n by 64:", "    move out to L1", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x1x64xbf16>, memref<1x64x16384xbf16>, memref<1x1x16384xf32>) -> ()
  return
}
