// Kernels are functions, and so is what is used more than once; equal code is one function, across functions and runs. The
// depth of a register tile is an argument: @two has another one.
// RUN: morello-opt %s --pass-pipeline="builtin.module(func.func(morello-apply{target=avx2}))" | FileCheck %s
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @one
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]], %{{.*}}:3, %{{.*}}:3 = memref.extract_strided_metadata %{{.*}} : memref<1x4x8xf32, strided<[128, 16, 1], offset: ?>>
// CHECK:         call @[[KERNEL:morello_broadcast_fma_4x8_[0-9a-f]+]](%[[BASE]], %[[OFFSET]], {{.*}}) : (memref<f32>, index, memref<f32>, index, memref<f32>, index, index, i1) -> ()
// CHECK-LABEL: func.func @two
// CHECK:         call @[[KERNEL]](
// CHECK:       func.func private @[[KERNEL]](%{{.*}}: memref<f32>, %{{.*}}: index, {{.*}}) attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]} {
// CHECK-NOT:   func.func
func.func @one(%a: memref<1x8x8xf32, strided<[128, 16, 1]>>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, L1, row_major, s64)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x8x8xf32, strided<[128, 16, 1]>>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

func.func @two(%a: memref<1x12x16xf32>, %b: memref<1x16x8xf32>, %c: memref<1x12x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 16, 8>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x12x16xf32>, memref<1x16x8xf32>, memref<1x12x8xf32>) -> ()
  return
}
