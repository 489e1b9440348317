// Code for a CPU that this machine need not be: 64-byte multiply-adds, broadcasts of their own on Intel's cores, folded into
// the multiply-add on Zen 4; no stack in the loop.
// RUN: morello-run %s --target sapphirerapids --emit asm | FileCheck %s --check-prefix=SPR
// RUN: morello-run %s --target znver4 --emit asm | FileCheck %s --check-prefix=ZEN

// SPR-LABEL: broadcast_fma_{{.*}}:
// SPR:       .LBB{{.*}}:
// SPR-NOT:   (%rsp
// SPR:       vbroadcastss {{.*}}, %zmm
// SPR-NOT:   (%rsp
// SPR:       vfmadd231ps {{.*}}%zmm
// SPR-NOT:   (%rsp
// SPR:       j{{b|ne}} .LBB

// ZEN-LABEL: broadcast_fma_{{.*}}:
// ZEN:       .LBB{{.*}}:
// ZEN-NOT:   (%rsp
// ZEN:       vfmadd231ps {{.*}}{1to16}, %zmm
// ZEN-NOT:   (%rsp
// ZEN:       j{{b|ne}} .LBB

func.func @mm(%a: memref<96x64xf32>, %b: memref<64x96xf32>, %c: memref<96x96xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<96x96xf32>)
  linalg.matmul ins(%a, %b : memref<96x64xf32>, memref<64x96xf32>) outs(%c : memref<96x96xf32>)
  return
}
