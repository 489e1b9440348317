// RUN: morello-opt %s --morello-chain | FileCheck %s

// Private globals stay, whoever reads them; private functions whose address is taken are not "called", but needed.
// CHECK: memref.global "private" constant @one
memref.global "private" constant @one : memref<f32> = dense<1.0>
// CHECK: func.func @reads
func.func @reads() -> memref<f32> {
  %0 = memref.get_global @one : memref<f32>
  return %0 : memref<f32>
}
// CHECK: func.func private @addressed
func.func private @addressed() {
  return
}
func.func @takes() -> (() -> ()) {
  %0 = func.constant @addressed : () -> ()
  return %0 : () -> ()
}
