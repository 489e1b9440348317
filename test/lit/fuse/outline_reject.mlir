// Regions that did not bufferize go again, with their ops as they were; fusing twice is fusing once.
// RUN: morello-opt %s --morello-fuse --morello-fuse | FileCheck %s --check-prefix=TWICE
// RUN: morello-opt %s --morello-fuse --morello-outline | FileCheck %s

// TWICE-COUNT-1: scf.execute_region
// TWICE-NOT: scf.execute_region

// CHECK-NOT: scf.execute_region
// CHECK-NOT: morello.
// CHECK: %[[E:.*]] = linalg.exp
// CHECK: linalg.reduce
// CHECK: return %{{.*}}, %[[E]]
func.func @f(%x: tensor<4x5xf32>) -> (tensor<4xf32>, tensor<4x5xf32>) {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x5xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %e = linalg.exp ins(%x : tensor<4x5xf32>) outs(%e0 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce { arith.addf } ins(%e : tensor<4x5xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  return %s, %e : tensor<4xf32>, tensor<4x5xf32>
}
