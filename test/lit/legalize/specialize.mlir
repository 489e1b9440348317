// RUN: morello-opt %s --morello-specialize='shapes=2x3,3x4,2x4,scalar' | FileCheck %s
// RUN: not morello-opt %s --morello-specialize='shapes=2x3,5x4,2x4,scalar' 2>&1 | FileCheck %s --check-prefix=CONTRADICTION
// RUN: not morello-opt %s --morello-specialize='shapes=2x3' 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not morello-opt %s --morello-specialize='shapes=2x3x4,3x4,2x4,scalar' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not morello-opt %s --morello-specialize='shapes=2x3,3x4,2xq,scalar' 2>&1 | FileCheck %s --check-prefix=TEXT

// CONTRADICTION: error: 'linalg.matmul' op
// COUNT: error: 'func.func' op takes 4 arguments, but 1 shapes are given
// RANK: error: 'func.func' op argument 0 of type tensor<?x?xf32> cannot have the shape 2x3x4
// TEXT: error: 'func.func' op argument 2: '2xq' is not a shape

// Sizes reach the result, and the private callee is inlined so that they reach its ops.
// CHECK-LABEL: func.func @f
// CHECK-SAME: %{{.*}}: tensor<2x3xf32>, %{{.*}}: tensor<3x4xf32>, %{{.*}}: memref<2x4xf32>, %{{.*}}: index
// CHECK-SAME: -> (tensor<2x4xf32>, tensor<?xf32>)
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<3x4xf32>)
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : memref<2x4xf32>)
func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x4xf32>, %m: memref<?x?xf32>, %n: index)
    -> (tensor<?x4xf32>, tensor<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %r = call @product(%a, %b) : (tensor<?x?xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  linalg.fill ins(%zero : f32) outs(%m : memref<?x?xf32>)
  %e = tensor.empty(%n) : tensor<?xf32>
  return %r, %e : tensor<?x4xf32>, tensor<?xf32>
}
func.func private @product(%a: tensor<?x?xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x4xf32>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
