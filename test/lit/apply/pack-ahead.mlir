// A constant operand lies in a buffer of the module: a header that says whether it has been filled, then the panels.
// RUN: morello-opt %s --morello-apply=target=avx512 | FileCheck %s
// RUN: morello-opt %s --morello-apply='target=avx512 stop-at=pack_ahead' | FileCheck %s --check-prefix=ABOVE
// RUN: morello-opt %s --morello-apply='target=avx512 stop-at=move' | FileCheck %s --check-prefix=BELOW
// RUN: morello-opt %s --morello-apply='target=avx512 stop-at=move' --morello-apply=target=avx512 | FileCheck %s
// RUN: morello-opt %s --morello-default=target=avx512 | FileCheck %s --check-prefix=LLVM

// Two Specs whose operands hold the same share it; one that does not say what it holds has its own.
// CHECK-LABEL: func.func @one
// CHECK:         %[[BUFFER:.*]] = memref.get_global @[[NAME:morello_ahead_[0-9a-f]+]] : memref<37440xi8>
// CHECK:         %[[STATE:.*]] = llvm.load %{{.*}} atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
// CHECK:         %[[EMPTY:.*]] = arith.cmpi eq, %[[STATE]], %c0_i32 : i32
// CHECK:         scf.if %[[EMPTY]] {
// CHECK-NEXT:      func.call @[[NAME]]_fill(%{{.*}}, %{{.*}}) : (memref<f32>, index) -> ()
// CHECK-NEXT:    }
// CHECK:         memref.view %[[BUFFER]][%c64][] : memref<37440xi8> to memref<1152xf32>
// CHECK-LABEL: func.func @two
// CHECK:         memref.get_global @[[NAME]] : memref<37440xi8>
// CHECK-LABEL: func.func @own
// CHECK:         memref.get_global @morello_ahead_own_0 : memref<37440xi8>
// CHECK-DAG:   memref.global "private" @[[NAME]] : memref<37440xi8> = dense<0> {alignment = 64 : i64}
// CHECK-DAG:   memref.global "private" @morello_ahead_own_0 : memref<37440xi8> = dense<0> {alignment = 64 : i64}
// CHECK-DAG:   func.func private @[[NAME]]_fill(%{{.*}}: memref<f32>, %{{.*}}: index) attributes {{.*}}internal{{.*}}noinline
// CHECK:         llvm.store %{{.*}}, %{{.*}} atomic release {alignment = 4 : i64} : i32, !llvm.ptr
// CHECK-NOT: memref.global

// ABOVE-LABEL: func.func @one
// ABOVE-NOT: get_global
// ABOVE: "morello.spec"{{.*}}constants = {rhs = "w"}{{.*}}(f32, GL, row_major, const){{.*}}schedule = ["pack_ahead rhs as
// BELOW-LABEL: func.func @one
// BELOW: func.call @morello_ahead_
// BELOW: "morello.spec"
// BELOW-NOT: constants
// BELOW-SAME: operands = ["(f32, GL, row_major)", "(f32, GL, [b, n/64, k, n%64])", "(f32, GL, row_major)"]

// LLVM-DAG: llvm.mlir.global private @morello_ahead_own_0(dense<0> : tensor<37440xi8>) {{.*}}alignment = 64
// LLVM-DAG: llvm.load %{{.*}} atomic acquire

!a = memref<1x4x8xf32>
!b = memref<1x8x88xf32>
!c = memref<1x4x88xf32>
func.func @one(%a: !a, %b: !b, %c: !c) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 4, 8, 88>, constants = {rhs = "w"},
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["pack_ahead rhs as [b, n/64, k, n%64]", "move lhs to L2", "move rhs to L2", "move out to L2",
                "tile n by 64:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma",
                "rest:", "  move out to L1", "  move out to VRF", "  kernel broadcast_fma"]
  } : (!a, !b, !c) -> ()
  return
}
func.func @two(%a: !a, %b: !b, %c: !c) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 88>, constants = {rhs = "w"},
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "pack_ahead rhs as [b, n/64, k, n%64]", "move lhs to L2", "move rhs to L2", "move out to L2",
                "tile n by 64:", "  kernel scalar", "rest:", "  kernel scalar"]
  } : (!a, !b, !c) -> ()
  return
}
func.func @own(%a: !a, %b: !b, %c: !c) {
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 4, 8, 88>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major, const)", "(f32, GL, row_major)"], serial,
    schedule = ["to_accum", "pack_ahead rhs as [b, n/64, k, n%64]", "move lhs to L2", "move rhs to L2", "move out to L2",
                "tile n by 64:", "  kernel scalar", "rest:", "  kernel scalar"]
  } : (!a, !b, !c) -> ()
  return
}
