// An output that may overlap an input is left to upstream's loops, which have one defined order.
// RUN: morello-opt %s --morello-lift --split-input-file --verify-diagnostics

func.func @in_place(%a: memref<4x4xf32>, %b: memref<4x4xf32>) {
  // expected-remark @below {{linalg.matmul not lifted: the output may overlap the first input}}
  linalg.matmul ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  return
}

// -----

func.func @overlapping_rows(%a: memref<4x4xf32>, %m: memref<6x4xf32>) {
  %v = memref.subview %m[0, 0] [4, 4] [1, 1] : memref<6x4xf32> to memref<4x4xf32, strided<[4, 1]>>
  %w = memref.subview %m[2, 0] [4, 4] [1, 1] : memref<6x4xf32> to memref<4x4xf32, strided<[4, 1], offset: 8>>
  // expected-remark @below {{the output may overlap the second input}}
  linalg.matmul ins(%a, %v : memref<4x4xf32>, memref<4x4xf32, strided<[4, 1]>>) outs(%w : memref<4x4xf32, strided<[4, 1], offset: 8>>)
  return
}

// -----

// Other rows, other columns, and every other column are other elements.
func.func @disjoint_views(%a: memref<4x4xf32>, %m: memref<8x8xf32>) {
  %0 = memref.subview %m[0, 0] [4, 4] [1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1]>>
  %1 = memref.subview %m[4, 0] [4, 4] [1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 32>>
  %2 = memref.subview %m[0, 4] [4, 4] [1, 1] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 4>>
  %3 = memref.subview %m[0, 0] [4, 4] [1, 2] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 2]>>
  %4 = memref.subview %m[0, 1] [4, 4] [1, 2] : memref<8x8xf32> to memref<4x4xf32, strided<[8, 2], offset: 1>>
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%a, %0 : memref<4x4xf32>, memref<4x4xf32, strided<[8, 1]>>) outs(%1 : memref<4x4xf32, strided<[8, 1], offset: 32>>)
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%a, %0 : memref<4x4xf32>, memref<4x4xf32, strided<[8, 1]>>) outs(%2 : memref<4x4xf32, strided<[8, 1], offset: 4>>)
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%a, %3 : memref<4x4xf32>, memref<4x4xf32, strided<[8, 2]>>) outs(%4 : memref<4x4xf32, strided<[8, 2], offset: 1>>)
  return
}

// -----

// Where a view starts is not known: it may be anywhere in the buffer.
func.func @dynamic_offset(%a: memref<4x4xf32>, %m: memref<8x4xf32>, %i: index) {
  %v = memref.subview %m[%i, 0] [4, 4] [1, 1] : memref<8x4xf32> to memref<4x4xf32, strided<[4, 1], offset: ?>>
  %w = memref.subview %m[4, 0] [4, 4] [1, 1] : memref<8x4xf32> to memref<4x4xf32, strided<[4, 1], offset: 16>>
  // expected-remark @below {{the output may overlap the second input}}
  linalg.matmul ins(%a, %v : memref<4x4xf32>, memref<4x4xf32, strided<[4, 1], offset: ?>>) outs(%w : memref<4x4xf32, strided<[4, 1], offset: 16>>)
  return
}

// -----

// A private function is called with one buffer for two parameters; a public one might be, but not by this module.
func.func private @callee(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) {
  // expected-remark @below {{the output may overlap the second input}}
  linalg.matmul ins(%a, %b : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}
func.func @caller(%x: memref<4x4xf32>, %y: memref<4x4xf32>) {
  call @callee(%x, %y, %y) : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%x, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  return
}

// -----

// What a call returns may be what it was given.
func.func private @same(%a: memref<4x4xf32>) -> memref<4x4xf32> {
  return %a : memref<4x4xf32>
}
func.func private @unknown(%a: memref<4x4xf32>) -> memref<4x4xf32>
func.func @returned(%x: memref<4x4xf32>, %y: memref<4x4xf32>) {
  %0 = call @same(%x) : (memref<4x4xf32>) -> memref<4x4xf32>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%x, %y : memref<4x4xf32>, memref<4x4xf32>) outs(%0 : memref<4x4xf32>)
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%y, %y : memref<4x4xf32>, memref<4x4xf32>) outs(%0 : memref<4x4xf32>)
  %1 = call @unknown(%x) : (memref<4x4xf32>) -> memref<4x4xf32>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%y, %y : memref<4x4xf32>, memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
  return
}

// -----

// Buffers that a loop carries around may have changed places; one that is allocated inside of it is always another.
func.func @loop(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %n: index) -> memref<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y) -> (memref<4x4xf32>, memref<4x4xf32>) {
    // expected-remark @below {{the output may overlap the first input}}
    linalg.matmul ins(%p, %p : memref<4x4xf32>, memref<4x4xf32>) outs(%q : memref<4x4xf32>)
    scf.yield %q, %p : memref<4x4xf32>, memref<4x4xf32>
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> memref<4x4xf32> {
    %q = memref.alloc() : memref<4x4xf32>
    // expected-remark @below {{linalg.matmul lifted}}
    linalg.matmul ins(%p, %p : memref<4x4xf32>, memref<4x4xf32>) outs(%q : memref<4x4xf32>)
    scf.yield %q : memref<4x4xf32>
  }
  return %s : memref<4x4xf32>
}

// -----

// Selected, branched to, loaded: followed, or taken for anything.
func.func @flow(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %t: memref<memref<4x4xf32>>, %p: i1) {
  %0 = arith.select %p, %x, %y : memref<4x4xf32>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%x, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%0 : memref<4x4xf32>)
  %1 = memref.load %t[] : memref<memref<4x4xf32>>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%x, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
  %2 = memref.alloc() : memref<4x4xf32>
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%1, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2 : memref<4x4xf32>)
  cf.cond_br %p, ^bb1(%x : memref<4x4xf32>), ^bb1(%y : memref<4x4xf32>)
^bb1(%3: memref<4x4xf32>):
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%y, %y : memref<4x4xf32>, memref<4x4xf32>) outs(%3 : memref<4x4xf32>)
  return
}

// -----

memref.global "private" @g : memref<4x4xf32> = uninitialized
memref.global "private" @h : memref<4x4xf32> = uninitialized

func.func @globals() {
  %0 = memref.get_global @g : memref<4x4xf32>
  %1 = memref.get_global @g : memref<4x4xf32>
  %2 = memref.get_global @h : memref<4x4xf32>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%0, %2 : memref<4x4xf32>, memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2 : memref<4x4xf32>)
  return
}

// -----

// A buffer of ours that was stored in memory, or given to a function that we do not see, may come back from there.
func.func private @keep(%a: memref<4x4xf32>)
func.func private @kept() -> memref<4x4xf32>
func.func @escaped(%x: memref<4x4xf32>) {
  %stored = memref.alloc() : memref<4x4xf32>
  %given = memref.alloc() : memref<4x4xf32>
  %ours = memref.alloc() : memref<4x4xf32>
  %box = memref.alloc() : memref<memref<4x4xf32>>
  memref.store %stored, %box[] : memref<memref<4x4xf32>>
  call @keep(%given) : (memref<4x4xf32>) -> ()
  %0 = memref.load %box[] : memref<memref<4x4xf32>>
  // expected-remark @below {{the output may overlap the first input}}
  linalg.matmul ins(%0, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%stored : memref<4x4xf32>)
  %1 = call @kept() : () -> memref<4x4xf32>
  // expected-remark @below {{the output may overlap the second input}}
  linalg.matmul ins(%x, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%given : memref<4x4xf32>)
  // expected-remark @below {{linalg.matmul lifted}}
  linalg.matmul ins(%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%ours : memref<4x4xf32>)
  return
}
