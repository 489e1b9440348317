// RUN: morello-opt %s --morello-bufferize | FileCheck %s

// The buffer of a tensor is freed.
// CHECK-LABEL: func.func @tensors
// CHECK: %[[BUFFER:.*]] = memref.alloc()
// CHECK: memref.dealloc %[[BUFFER]]
func.func @tensors(%x: tensor<4xf32>, %y: memref<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp {morello.group = 3 : i64} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.exp ins(%r : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %s in writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// A returned argument of memref type stays that argument.
// CHECK-LABEL: func.func @alias
// CHECK-SAME: %[[X:[^:]*]]: memref<4xf32>
// CHECK-NEXT: return %[[X]]
func.func @alias(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// Local buffers that nobody frees are freed; who frees by hand does so alone.
// CHECK-LABEL: func.func @local
// CHECK: memref.dealloc
// CHECK-LABEL: func.func @by_hand
// CHECK-COUNT-1: memref.dealloc
// CHECK-NOT: memref.dealloc
func.func @local(%x: memref<4xf32>) {
  %m = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%m : memref<4xf32>)
  linalg.exp ins(%m : memref<4xf32>) outs(%x : memref<4xf32>)
  return
}
func.func @by_hand(%x: memref<4xf32>) {
  %m = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%m : memref<4xf32>)
  linalg.exp ins(%m : memref<4xf32>) outs(%x : memref<4xf32>)
  memref.dealloc %m : memref<4xf32>
  return
}
