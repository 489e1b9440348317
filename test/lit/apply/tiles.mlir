// Tile registers (AMX): shapes are set once, above all loops; sums are loaded, added to over k, and stored.
// RUN: morello-opt %s --split-input-file --morello-apply=target=sapphirerapids | FileCheck %s

// CHECK-LABEL: func.func @pairs
// CHECK:         call @morello_tiles_f32()
// CHECK:         scf.for
// CHECK:           call @[[KERNEL:morello_amx_bf16_64x64x32_[a-z0-9]*]]
// CHECK:         llvm.call_intrinsic "llvm.x86.tilerelease"()

// 2 x 2 tiles of sums. Each tile of lhs and rhs is loaded once a step; no shapes are set.
// CHECK:       func.func private @[[KERNEL]](
// CHECK-NOT:     ldtilecfg
// CHECK:         scf.for
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK:           scf.for
// CHECK-COUNT-4:     llvm.x86.tdpbf16ps
// CHECK-NOT:         llvm.x86.tdpbf16ps
// CHECK:           }
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK-NOT:     ldtilecfg
// CHECK:         return
// CHECK:       func.func private @morello_tiles_f32()
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"
func.func @pairs(%a: memref<1x64x64xbf16>, %b: memref<1x64x64xbf16>, %c: memref<1x64x64xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 64, 64, 64>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/32, k/2, n%32, k%2]", "move lhs to L2", "move out to L2", "tile n by 32:",
                "    kernel amx_bf16"]
  } : (memref<1x64x64xbf16>, memref<1x64x64xbf16>, memref<1x64x64xf32>) -> ()
  return
}

// -----

// Three rows, 20 columns, and 10 bytes along k. What k lacks to 64 bytes is copied with zeros after it, the tile of
// four columns goes by way of a copy, and tiles of three rows need shapes of their own, then those of whole tiles again.
// CHECK-LABEL: func.func @less
// CHECK:         call @morello_tiles_i32()
// CHECK:       func.func private @morello_amx_int8_3x10x20_
// CHECK:         vector.store %{{.*}} : memref<2048xi8>, vector<64xi8>
// CHECK:         llvm.x86.ldtilecfg
// CHECK:         vector.maskedload {{.*}} vector<64xi1>, vector<64xi8> into vector<64xi8>
// CHECK:         llvm.x86.tileloadd64
// CHECK-COUNT-2: llvm.x86.tdpbsud
// CHECK-COUNT-2: llvm.x86.tilestored64
// CHECK:         vector.store {{.*}}, vector<4xi32>
// CHECK:         llvm.x86.ldtilecfg
// CHECK:         return
func.func @less(%a: memref<1x3x10xi8>, %b: memref<1x10x20xi8>, %c: memref<1x3x20xi32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 3, 10, 20>,
    operands = ["(i8, GL, row_major)", "(u8, GL, row_major)", "(i32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/32, k/4, n%32, k%4]", "move lhs to L2", "move out to L2", "kernel amx_int8"]
  } : (memref<1x3x10xi8>, memref<1x10x20xi8>, memref<1x3x20xi32>) -> ()
  return
}
