// What an output that is written past the caches may not be: one rule a case.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 --verify-diagnostics

func.func @read(%a: memref<1x8x3xf32>, %b: memref<1x3x16xf32>, %c: memref<1x8x16xf32>) {
  // expected-error @below {{move out to WC: MatmulAccum adds to its output, which must be read for that}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 8, 3, 16>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move out to WC", "?"]
  } : (memref<1x8x3xf32>, memref<1x3x16xf32>, memref<1x8x16xf32>) -> ()
  return
}

// -----

func.func @parts_of_lines(%a: memref<1x8x3xf32>, %b: memref<1x3x15xf32>, %c: memref<1x8x15xf32>) {
  // expected-error @below {{move out to WC: its rows do not begin at lines}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 3, 15>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move out to WC", "?"]
  } : (memref<1x8x3xf32>, memref<1x3x15xf32>, memref<1x8x15xf32>) -> ()
  return
}

// -----

func.func @split(%a: memref<1x8x4xf32>, %b: memref<1x4x16xf32>, %c: memref<1x8x16xf32>) {
  // expected-error @below {{split k by 2: only an accumulating function can be split along k: put to_accum above}}
  "morello.spec"(%a, %b, %c) {
    function = "Matmul", dims = array<i64: 1, 8, 4, 16>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move out to WC", "split k by 2:", "  ?"]
  } : (memref<1x8x4xf32>, memref<1x4x16xf32>, memref<1x8x16xf32>) -> ()
  return
}
