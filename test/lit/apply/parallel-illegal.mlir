// What threads may not do: one rule a case.
// RUN: morello-opt %s --split-input-file --morello-apply=target=avx2 --verify-diagnostics

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile m by 6: the Spec is serial: there is one thread}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 6:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{serial: the Spec is serial already}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["serial", "?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile k by 4: k is split, not tile}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile k by 4:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile m by 12: the size must be less than m=12}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 12:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile m by 5: m=12 needs a 'rest:'}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 5:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile m by 6 over 3: 4 threads do not make 3 groups}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 4 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 6 over 3:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{tile n by 16: threads are under way: only a parallel loop may follow}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 4 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 6 over 2:", "  tile n by 16:", "    ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{serial: threads are under way: only a parallel loop may follow}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 4 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 6 over 2:", "  serial", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile n by 16 over 2: the second parallel loop takes all 4 threads}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 8 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel tile m by 6 over 2:", "  parallel tile n by 16 over 2:", "    ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{move rhs to L2: threads have caches of their own: what they share is packed to GL}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["move rhs to L2", "?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel tile m by 6: threads have caches of their own: all operands must be in GL}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, L2, row_major)", "(f32, L2, row_major)", "(f32, L2, row_major)"],
    schedule = ["parallel tile m by 6:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{kernel scalar: a kernel runs on one thread: put serial or a parallel tile above}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 2 : i64,
    operands = ["(f32, L1, row_major)", "(f32, L1, row_major)", "(f32, L1, row_major)"],
    schedule = ["kernel scalar"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{a serial goal has one thread}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, serial, threads = 2 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{-1 threads are not between 1 and 253}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = -1 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}

// -----

func.func @case(%a: memref<1x12x8xf32>, %b: memref<1x8x64xf32>, %c: memref<1x12x64xf32>) {
  // expected-error @below {{parallel split k by 5: 2 trips do not give each of 3 threads one}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 8, 64>, threads = 3 : i64,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    schedule = ["parallel split k by 5:", "  ?", "rest:", "  ?"]
  } : (memref<1x12x8xf32>, memref<1x8x64xf32>, memref<1x12x64xf32>) -> ()
  return
}
