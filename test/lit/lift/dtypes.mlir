// Element types of contractions: the body says how inputs are widened, and in what the products are added up.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// CHECK-LABEL: func.func private @morello_matmul_accum_1x4x5x6_bf16_f32(
// CHECK: operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"]
func.func @bf16(%a: memref<4x5xbf16>, %b: memref<5x6xbf16>, %c: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xbf16>, memref<5x6xbf16>) outs(%c : memref<4x6xf32>)
  return
}

// -----

// CHECK: operands = ["(f32, GL, row_major)", "(bf16, GL, row_major)", "(f32, GL, row_major)"]
func.func @one_input_is_narrow(%a: memref<4x5xf32>, %b: memref<5x6xbf16>, %c: memref<4x6xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x6xbf16>) outs(%c : memref<4x6xf32>)
  return
}

// -----

// A narrow output: rounded once.
// CHECK: operands = ["(f16, GL, row_major)", "(f16, GL, row_major)", "(f16, GL, row_major)"]
func.func @narrow_output(%a: memref<4x5xf16>, %b: memref<5x6xf16>, %c: memref<4x6xf16>) {
  linalg.matmul ins(%a, %b : memref<4x5xf16>, memref<5x6xf16>) outs(%c : memref<4x6xf16>)
  return
}

// -----

// CHECK: operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"]
func.func @signed(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi32>) {
  linalg.matmul ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi32>)
  return
}

// -----

// CHECK: operands = ["(u8, GL, row_major)", "(u8, GL, row_major)", "(i32, GL, row_major)"]
func.func @unsigned(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi32>) {
  linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi32>)
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// The fill is an integer's; the signs differ.
// CHECK-LABEL: func.func private @morello_matmul_1x4x5x6_u8_i8_i32(
// CHECK: operands = ["(u8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"]
func.func @mixed_signs(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi32>) {
  %z = arith.constant 0 : i32
  linalg.fill ins(%z : i32) outs(%c : memref<4x6xi32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi32>) {
  ^bb0(%x: i8, %y: i8, %acc: i32):
    %u = arith.extui %x : i8 to i32
    %s = arith.extsi %y : i8 to i32
    %p = arith.muli %u, %s : i32
    %q = arith.addi %acc, %p : i32
    linalg.yield %q : i32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Widened, added up in f32 and rounded by the body itself.
// CHECK: operands = ["(bf16, GL, row_major)", "(bf16, GL, row_major)", "(bf16, GL, row_major)"]
func.func @rounded_in_the_body(%a: memref<4x5xbf16>, %b: memref<5x6xbf16>, %c: memref<4x6xbf16>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xbf16>, memref<5x6xbf16>) outs(%c : memref<4x6xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %acc: bf16):
    %u = arith.extf %x : bf16 to f32
    %v = arith.extf %y : bf16 to f32
    %w = arith.extf %acc : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %w, %p : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// First without a sign, then with one: the second makes no difference.
// CHECK: operands = ["(u8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"]
func.func @without_a_sign_first(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi32>) {
  ^bb0(%x: i8, %y: i8, %acc: i32):
    %t = arith.extui %x : i8 to i16
    %u = arith.extsi %t : i16 to i32
    %v = arith.extsi %y : i8 to i32
    %p = arith.muli %u, %v : i32
    %q = arith.addi %acc, %p : i32
    linalg.yield %q : i32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Sums of shorts, whose upper bits are dropped: at every step or at the end is the same.
// CHECK: operands = ["(u8, GL, row_major)", "(i8, GL, row_major)", "(i16, GL, row_major)"]
func.func @shorts(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi16>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi16>) {
  ^bb0(%x: i8, %y: i8, %acc: i16):
    %u = arith.extui %x : i8 to i32
    %v = arith.extsi %y : i8 to i32
    %t = arith.extsi %acc : i16 to i32
    %p = arith.muli %u, %v : i32
    %q = arith.addi %t, %p : i32
    %r = arith.trunci %q : i32 to i16
    linalg.yield %r : i16
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// The product is rounded before it is added: that is not ours.
// CHECK-NOT: morello.spec
func.func @rounded_products(%a: memref<4x5xbf16>, %b: memref<5x6xbf16>, %c: memref<4x6xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xbf16>, memref<5x6xbf16>) outs(%c : memref<4x6xf32>) {
  ^bb0(%x: bf16, %y: bf16, %acc: f32):
    %p = arith.mulf %x, %y : bf16
    %w = arith.extf %p : bf16 to f32
    %q = arith.addf %acc, %w : f32
    linalg.yield %q : f32
  }
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// First with a sign, then without: neither an i8 nor a u8 is worth that.
// CHECK-NOT: morello.spec
func.func @with_a_sign_first(%a: memref<4x5xi8>, %b: memref<5x6xi8>, %c: memref<4x6xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<4x5xi8>, memref<5x6xi8>) outs(%c : memref<4x6xi32>) {
  ^bb0(%x: i8, %y: i8, %acc: i32):
    %t = arith.extsi %x : i8 to i16
    %u = arith.extui %t : i16 to i32
    %v = arith.extsi %y : i8 to i32
    %p = arith.muli %u, %v : i32
    %q = arith.addi %acc, %p : i32
    linalg.yield %q : i32
  }
  return
}
