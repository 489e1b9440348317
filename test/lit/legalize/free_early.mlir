// Buffers are freed right after their last use.
// RUN: split-file %s %t
// RUN: morello-opt %t/seen.mlir --morello-free-early | FileCheck %t/seen.mlir
// RUN: morello-opt %t/unseen.mlir --morello-free-early | FileCheck %t/unseen.mlir

//--- seen.mlir
func.func private @work(%a: memref<8xf32>, %b: memref<f32>) {
  return
}
func.func private @same(%a: memref<8xf32>) -> memref<8xf32> {
  return %a : memref<8xf32>
}

// Through views, and in regions.
// CHECK-LABEL: func.func @moved
// CHECK:         call @work
// CHECK-NEXT:    memref.dealloc %[[A:.*]] : memref<8xf32>
// CHECK-NEXT:    scf.for
// CHECK:         }
// CHECK-NEXT:    memref.dealloc %[[B:.*]] : memref<8xf32>
// CHECK-NEXT:    memref.copy
func.func @moved(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %base, %offset, %size, %stride = memref.extract_strided_metadata %a : memref<8xf32> -> memref<f32>, index, index, index
  memref.copy %a, %b : memref<8xf32> to memref<8xf32>
  func.call @work(%x, %base) : (memref<8xf32>, memref<f32>) -> ()
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %b[%i] : memref<8xf32>
    memref.store %v, %x[%i] : memref<8xf32>
  }
  memref.copy %x, %y : memref<8xf32> to memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  memref.dealloc %b : memref<8xf32>
  return
}

// What it was given comes back from a call, or is chosen from: nobody knows for how long it is used.
// CHECK-LABEL: func.func @kept
// CHECK:         memref.copy
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    memref.dealloc
// CHECK-NEXT:    return
func.func @kept(%x: memref<8xf32>, %c: i1) {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %back = func.call @same(%a) : (memref<8xf32>) -> memref<8xf32>
  %either = arith.select %c, %b, %x : memref<8xf32>
  memref.copy %back, %either : memref<8xf32> to memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  memref.dealloc %b : memref<8xf32>
  return
}

// A buffer that another one holds.
// CHECK-LABEL: func.func @stored
// CHECK:         memref.copy
// CHECK-NEXT:    memref.dealloc
func.func @stored(%x: memref<8xf32>, %table: memref<1xmemref<8xf32>>) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<8xf32>
  memref.store %a, %table[%c0] : memref<1xmemref<8xf32>>
  %same = memref.load %table[%c0] : memref<1xmemref<8xf32>>
  memref.copy %same, %x : memref<8xf32> to memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  return
}

//--- unseen.mlir
// What a function does with a buffer that is not here, nobody knows.
func.func private @keep(memref<8xf32>)
func.func private @use()

// CHECK-LABEL: func.func @called
// CHECK:         call @use
// CHECK-NEXT:    memref.dealloc
func.func @called() {
  %a = memref.alloc() : memref<8xf32>
  func.call @keep(%a) : (memref<8xf32>) -> ()
  func.call @use() : () -> ()
  memref.dealloc %a : memref<8xf32>
  return
}
