// RUN: morello-opt %s --morello-specialize='shapes=4' | FileCheck %s

// A function that the module calls itself keeps its types: its other callers rely on them.
// CHECK: func.func @f(%{{.*}}: memref<?xf32>)
func.func @f(%x: memref<?xf32>) {
  call @f(%x) : (memref<?xf32>) -> ()
  return
}
