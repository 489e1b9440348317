// What is made anew in every call, though constants are part of it.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s

// CHECK-NOT: morello_once

// One input changes.
// CHECK-LABEL: func @changes
func.func @changes(%x: memref<5x6xf32>, %w: memref<5x6xf32> {morello.constant}, %y: memref<5xf32>) {
  %z = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<5xf32>
  linalg.fill ins(%z : f32) outs(%s : memref<5xf32>)
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%x, %w : memref<5x6xf32>, memref<5x6xf32>) outs(%s : memref<5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.maximumf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  }
  memref.copy %s, %y : memref<5xf32> to memref<5xf32>
  memref.dealloc %s : memref<5xf32>
  return
}

// -----

// The result is larger than what it is made of.
// CHECK-NOT: morello_once
// CHECK-LABEL: func @larger
func.func @larger(%w: memref<6xf32> {morello.constant}, %y: memref<5x6xf32>) {
  %s = memref.alloc() : memref<5x6xf32>
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%w : memref<6xf32>) outs(%s : memref<5x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  }
  memref.copy %s, %y : memref<5x6xf32> to memref<5x6xf32>
  memref.dealloc %s : memref<5x6xf32>
  return
}

// -----

// Somebody else writes to the buffer, it is the caller's, or it leaves the function.
// CHECK-NOT: morello_once
// CHECK-LABEL: func @written
func.func @written(%w: memref<6xf32> {morello.constant}, %y: memref<6xf32>, %v: f32) -> memref<6xf32> {
  %c0 = arith.constant 0 : index
  %s = memref.alloc() : memref<6xf32>
  %u = memref.alloc() : memref<6xf32>
  linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%w : memref<6xf32>) outs(%s : memref<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  }
  memref.store %v, %s[%c0] : memref<6xf32>
  linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%w : memref<6xf32>) outs(%y : memref<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%w : memref<6xf32>) outs(%u : memref<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  }
  memref.copy %s, %y : memref<6xf32> to memref<6xf32>
  memref.dealloc %s : memref<6xf32>
  return %u : memref<6xf32>
}

// -----

// It need not run in every call: who knows whether it may.
// CHECK-NOT: morello_once
// CHECK-LABEL: func @branch
func.func @branch(%w: memref<6xi32> {morello.constant}, %y: memref<6xi32>, %c: i1) {
  %s = memref.alloc() : memref<6xi32>
  scf.if %c {
    linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
      ins(%w : memref<6xi32>) outs(%s : memref<6xi32>) {
    ^bb0(%a: i32, %o: i32):
      %t = arith.muli %a, %a : i32
      linalg.yield %t : i32
    }
    memref.copy %s, %y : memref<6xi32> to memref<6xi32>
  }
  memref.dealloc %s : memref<6xi32>
  return
}
