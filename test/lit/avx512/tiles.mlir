// Machine code on tile registers, for a CPU that this machine need not be; without them, vectors of f32.
// RUN: morello-run %s --target sapphirerapids --emit asm | FileCheck %s --check-prefix=SPR
// RUN: morello-run %s --target skylake-avx512 --emit asm | FileCheck %s --check-prefix=SKX

// SPR-LABEL: amx_bf16_{{.*}}:
// SPR:       tileloadd
// SPR:       tdpbf16ps
// SPR:       tilestored

// SKX-NOT: tdpbf16ps
// SKX:     vfmadd

func.func @mm(%a: memref<64x128xbf16>, %b: memref<128x64xbf16>, %c: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<64x64xf32>)
  linalg.matmul ins(%a, %b : memref<64x128xbf16>, memref<128x64xbf16>) outs(%c : memref<64x64xf32>)
  return
}
