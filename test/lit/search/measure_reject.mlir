// What cannot be measured: a target that this machine cannot run is an error, other goals a warning each.
// RUN: morello-opt %s --morello-search='measure top-k=2' 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: not %python -c "from morello_mlir import targets; targets.missing_features = lambda *a: ['avx512f']; \
// RUN:   from morello_mlir.tools.opt import main; raise SystemExit(main(['%s', '--morello-search=target=avx512 measure']))" 2>&1 | FileCheck %s
// CHECK: error: {{.*}}nothing can be measured: this machine cannot run code for target 'avx512': its CPU has no avx512f

func.func @in_cache(%a: memref<1x8x8xf32>, %b: memref<1x8x8xf32>, %c: memref<1x8x8xf32>) {
  // WARN: [[#@LINE+1]]:{{[0-9]+}}: warning: not measured: lhs is (f32, L2, row_major): only unpacked operands in GL can be measured; the cost model's choice is taken
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 8, 8>,
    operands = ["(f32, L2, row_major)", "(f32, L2, row_major)", "(f32, L2, row_major)"], serial
  } : (memref<1x8x8xf32>, memref<1x8x8xf32>, memref<1x8x8xf32>) -> ()
  return
}

// Where the places of a window lie only the function says that lifting makes.
func.func @window(%x: memref<1x4x4x1x12xf32, strided<[96, 24, 4, 24, 1]>>, %w: memref<1x12x16xf32>, %y: memref<1x16x16xf32>) {
  // WARN: [[#@LINE+5]]:{{[0-9]+}}: warning: not measured: its text does not say where the places of a window lie: give the module; the cost model's choice is taken
  // WARN: func @in_cache
  // WARN: source = "{{search|memo}}"
  // WARN: func @window
  // WARN: source = "{{search|memo}}"
  "morello.spec"(%x, %w, %y) {
    function = "Matmul", dims = array<i64: 1, 16, 12, 16>,
    operands = ["(f32, GL, row_major, m%4, k%12, lap 1:1:4:1, lap 4:12:1:1)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial
  } : (memref<1x4x4x1x12xf32, strided<[96, 24, 4, 24, 1]>>, memref<1x12x16xf32>, memref<1x16x16xf32>) -> ()
  return
}
