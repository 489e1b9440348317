// RUN: morello-opt %s --morello-bare-pointers | FileCheck %s
// RUN: morello-opt %s --morello-bare-pointers=public=true | FileCheck %s --check-prefix=PUBLIC

// Public functions keep the convention that others know, unless asked.
// CHECK: func.func @public(%{{.*}}: memref<4xf32>) {
// PUBLIC: func.func @public(%{{.*}}: memref<4xf32>) attributes {llvm.bareptr}
func.func @public(%x: memref<4xf32>) {
  return
}
// CHECK: func.func private @static
// CHECK-SAME: memref<4xf32, strided<[2], offset: 3>> {llvm.noalias, morello.unaliased}
// CHECK-SAME: attributes {llvm.bareptr}
func.func private @static(%x: memref<4xf32, strided<[2], offset: 3>> {morello.unaliased}, %i: index) -> index {
  return %i : index
}
// Sizes, strides or offsets that only a descriptor has; the allocated pointer, which only a descriptor has.
// CHECK-NOT: llvm.bareptr
func.func private @dynamic(%x: memref<?xf32>) {
  return
}
func.func private @strides(%x: memref<4xf32, strided<[?]>>) {
  return
}
func.func private @offset(%x: memref<4xf32, strided<[1], offset: ?>>) {
  return
}
func.func private @returns(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}
func.func private @frees(%x: memref<4xf32>) {
  memref.dealloc %x : memref<4xf32>
  return
}
func.func private @declared(memref<4xf32>)
func.func private @addressed(%x: memref<4xf32>) {
  %f = func.constant @addressed : (memref<4xf32>) -> ()
  func.call_indirect %f(%x) : (memref<4xf32>) -> ()
  return
}
