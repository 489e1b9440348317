// What cannot be measured: a target that this machine cannot run is an error, a Spec away from memory a warning.
// RUN: morello-opt %s --morello-search='measure top-k=2' 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: not %python -c "from morello_mlir import targets; targets.missing_features = lambda *a: ['avx512f']; \
// RUN:   from morello_mlir.tools.opt import main; raise SystemExit(main(['%s', '--morello-search=target=avx512 measure']))" 2>&1 | FileCheck %s
// CHECK: error: {{.*}}nothing can be measured: this machine cannot run code for target 'avx512': its CPU has no avx512f

func.func @in_cache(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  // WARN: [[#@LINE+2]]:{{[0-9]+}}: warning: not measured: lhs is (f32, L2, row_major): only unpacked operands in GL can be measured; the cost model's choice is taken
  // WARN: source = "search"
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, L2, row_major)", "(f32, L2, row_major)", "(f32, L2, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}
