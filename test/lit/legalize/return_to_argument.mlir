// RUN: morello-opt %s --morello-return-to-argument | FileCheck %s
// RUN: morello-opt %s --morello-return-to-argument --morello-bufferize | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {bufferization.writable = false}
// CHECK-SAME: %[[OUT:[^:]*]]: memref<4xf32> {morello.result = 0 : i64, morello.unaliased}
// CHECK-SAME: -> (tensor<?xf32>, f32)
// CHECK: linalg.copy {{.*}}morello.own_copy{{.*}} ins(%[[X]]
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
// CHECK: return %{{.*}}, %{{.*}} : tensor<?xf32>, f32

// The result is computed in place: nothing of its size is allocated.
// BUFFERS-LABEL: func.func @f
// BUFFERS-NOT: memref.alloc() {{.*}} : memref<4xf32>
// BUFFERS: return
func.func @f(%x: tensor<4xf32>, %y: tensor<?xf32>, %s: f32) -> (tensor<4xf32>, tensor<?xf32>, f32) {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<4xf32>) {
    ^bb0(%o: f32):
      %d = arith.addf %o, %o : f32
      linalg.yield %d : f32
  } -> tensor<4xf32>
  return %r, %y, %s : tensor<4xf32>, tensor<?xf32>, f32
}
