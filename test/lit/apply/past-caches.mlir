// An output that is written once, past the caches: whole vectors by stores that are not temporal, where it begins at a line.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @serial
// CHECK:         func.call @[[K:morello_broadcast_fma_4x3x16_[0-9a-f]+]]
// CHECK:         llvm.call_intrinsic "llvm.x86.sse.sfence"()
// CHECK:       func.func private @[[K]]
// CHECK-NOT:     memref.prefetch {{.*}}, write
// CHECK:         llvm.ptrtoint
// CHECK:         %[[WITHIN:.*]] = arith.andi {{.*}}, %c63
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq, %[[WITHIN]], %c0
// CHECK:         scf.if %[[ALIGNED]] {
// CHECK-COUNT-8:   vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
// CHECK-NOT:       nontemporal
// CHECK:         } else {
// CHECK-COUNT-8:   vector.store
// CHECK-NOT:     nontemporal
func.func @serial(%a: memref<1x8x3xf32>, %b: memref<1x3x16xf32>, %c: memref<1x8x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 3, 16>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move out to WC", "move lhs to L2", "move rhs to L2", "tile m by 4:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x8x3xf32>, memref<1x3x16xf32>, memref<1x8x16xf32>) -> ()
  return
}

// -----

// Each thread's stores are done before others are told that it is.
// CHECK-LABEL: func.func @shared
// CHECK:         scf.parallel
// CHECK:       func.func private @morello_threads_8x3x16_{{.*}} {
// CHECK:         scf.for
// CHECK:         }
// CHECK:         llvm.call_intrinsic "llvm.x86.sse.sfence"()
// CHECK-NEXT:    return
func.func @shared(%a: memref<1x8x3xf32>, %b: memref<1x3x16xf32>, %c: memref<1x8x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 3, 16>, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move out to WC", "parallel tile m by 4:", "    move lhs to L2", "    move rhs to L2", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x8x3xf32>, memref<1x3x16xf32>, memref<1x8x16xf32>) -> ()
  return
}

// -----

// An output in caches is stored as always.
// CHECK-LABEL: func.func @cached
// CHECK-NOT:     nontemporal
// CHECK-NOT:     sfence
func.func @cached(%a: memref<1x8x3xf32>, %b: memref<1x3x16xf32>, %c: memref<1x8x16xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 3, 16>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["to_accum", "move out to L2", "move lhs to L2", "move rhs to L2", "move out to L1", "tile m by 4:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x8x3xf32>, memref<1x3x16xf32>, memref<1x8x16xf32>) -> ()
  return
}
