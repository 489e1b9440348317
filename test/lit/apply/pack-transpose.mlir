// Packing where the other dim has unit stride: blocks are transposed in registers. Partial vectors are stored under a mask
// with AVX-512, in pieces without.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx512 | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 | FileCheck %s --check-prefixes=CHECK,AVX2

// CHECK-LABEL: func.func @pack_lhs
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 {
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c8 {
// CHECK-COUNT-6:     vector.load {{.*}}vector<8xf32>
// CHECK-COUNT-24:    vector.shuffle
// AVX512-COUNT-8:    vector.maskedstore
// AVX2:              vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [4], strides = [1]}
// AVX2:              vector.extract_strided_slice {{.*}} {offsets = [4], sizes = [2], strides = [1]}
// The rest of k: loads under a mask.
// CHECK:           vector.maskedload
func.func @pack_lhs(%a: memref<1x12x19xf32>, %b: memref<1x19x8xf32>, %c: memref<1x12x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 19, 8>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2 as [b, m/6, k, m%6]", "move rhs to L2", "move out to L2",
                "tile m by 6:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x12x19xf32>, memref<1x19x8xf32>, memref<1x12x8xf32>) -> ()
  return
}

// -----

// Neither dim has unit stride: element by element.
// CHECK-LABEL: func.func @gapped
// CHECK-NOT:     vector.shuffle
// CHECK:         memref.load
// CHECK:         memref.store
// CHECK:         call @morello_broadcast_fma_6x19x8_
func.func @gapped(%a: memref<1x12x19xf32, strided<[456, 38, 2]>>, %b: memref<1x19x8xf32>, %c: memref<1x12x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 19, 8>,
    operands = ["(f32, GL, row_major, gapped)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2 as [b, m/6, k, m%6]", "move rhs to L2", "move out to L2",
                "tile m by 6:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x12x19xf32, strided<[456, 38, 2]>>, memref<1x19x8xf32>, memref<1x12x8xf32>) -> ()
  return
}
