// Kernels are functions, and so is what is used more than once; equal code is one function, across functions and runs. The
// depth of a register tile is an argument: @two has another one. Few k steps have no loop, and where the first one stores at
// every call nothing has to say so.
// RUN: morello-opt %s --pass-pipeline="builtin.module(func.func(morello-apply{target=avx2}))" | FileCheck %s
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @one
// CHECK:         %[[BASE:.*]], %[[OFFSET:.*]], %{{.*}}:3, %{{.*}}:3 = memref.extract_strided_metadata %{{.*}} : memref<1x4x96xf32, strided<[1536, 192, 1], offset: ?>>
// CHECK:         %[[WHOLE:.*]] = builtin.unrealized_conversion_cast %[[BASE]] : memref<f32> to !llvm.struct<(ptr, ptr, i64)>
// CHECK:         %[[START:.*]] = llvm.extractvalue %[[WHOLE]][1]
// CHECK:         %[[AT:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[START]][%[[AT]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         call @[[KERNEL:morello_broadcast_fma_4x8_[0-9a-f]+]](%[[FIRST]], {{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, index, i1) -> ()
// CHECK-LABEL: func.func @two
// CHECK:         call @[[KERNEL]](
// CHECK-LABEL: func.func @stores
// CHECK:         call @[[SHORT:morello_broadcast_fma_4x8x8_[0-9a-f]+]]({{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
// CHECK-DAG:   func.func private @[[SHORT]](%{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: !llvm.ptr) attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]} {
// CHECK-DAG:   func.func private @[[KERNEL]](%{{.*}}: !llvm.ptr, %{{.*}}: index, %{{.*}}: i1) attributes
// CHECK-NOT:   func.func
func.func @one(%a: memref<1x8x96xf32, strided<[1536, 192, 1]>>, %b: memref<1x96x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 96, 8>,
    operands = ["(f32, L1, row_major, s256)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x8x96xf32, strided<[1536, 192, 1]>>, memref<1x96x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

func.func @two(%a: memref<1x12x192xf32>, %b: memref<1x192x8xf32>, %c: memref<1x12x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 192, 8>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["tile m by 4:", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x12x192xf32>, memref<1x192x8xf32>, memref<1x12x8xf32>) -> ()
  return
}

func.func @stores(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"], serial,
    schedule = ["to_accum", "tile m by 4:", "  move out to VRF", "  kernel broadcast_fma"]
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
