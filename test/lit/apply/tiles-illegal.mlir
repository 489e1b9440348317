// RUN: morello-opt %s --split-input-file --morello-apply=target=cooperlake --verify-diagnostics

// A CPU without tile registers.
func.func @cpu(%a: memref<1x16x64xbf16>, %b: memref<1x64x16xbf16>, %c: memref<1x16x16xf32>) {
  // expected-error @below {{kernel amx_bf16: avx512 does not have the instruction}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 16, 64, 16>,
    operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/16, k/2, n%16, k%2]", "move lhs to L2", "move out to L2", "kernel amx_bf16"]
  } : (memref<1x16x64xbf16>, memref<1x64x16xbf16>, memref<1x16x16xf32>) -> ()
  return
}
