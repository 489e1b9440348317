// Zero points are taken off afterwards: the product of the bytes as they are is what there are kernels for.
// RUN: morello-opt %s --morello-group | FileCheck %s

// CHECK-LABEL: func.func @both
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}}) outs(%arg2 : tensor<6x10xi32>) attrs = {morello.group
// CHECK: %[[A:.*]] = linalg.generic {{.*}}["parallel", "reduction"]{{.*}} ins(%arg0 : tensor<6x19xi8>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<19x10xi8>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[A]], %[[B]] : tensor<6x10xi32>, tensor<6xi32>, tensor<10xi32>)
// CHECK-NOT: quantized
func.func @both(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>, %c: tensor<6x10xi32>, %za: i32, %zb: i32) -> tensor<6x10xi32> {
  %r = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<6x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<6x10xi32>) -> tensor<6x10xi32>
  return %r : tensor<6x10xi32>
}

// A zero point of zero takes nothing off.
// CHECK-LABEL: func.func @none
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}}) outs(%arg2 : tensor<3x6x10xi32>) attrs = {morello.group
// CHECK-NEXT: ^bb0
// CHECK: return %[[P]]
func.func @none(%a: tensor<3x6x19xi8>, %b: tensor<3x19x10xi8>, %c: tensor<3x6x10xi32>) -> tensor<3x6x10xi32> {
  %z = arith.constant 0 : i32
  %r = linalg.quantized_batch_matmul ins(%a, %b, %z, %z : tensor<3x6x19xi8>, tensor<3x19x10xi8>, i32, i32) outs(%c : tensor<3x6x10xi32>) -> tensor<3x6x10xi32>
  return %r : tensor<3x6x10xi32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.quantized_matmul
func.func @dynamic(%a: tensor<?x19xi8>, %b: tensor<19x10xi8>, %c: tensor<?x10xi32>, %z: i32) -> tensor<?x10xi32> {
  %r = linalg.quantized_matmul ins(%a, %b, %z, %z : tensor<?x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<?x10xi32>) -> tensor<?x10xi32>
  return %r : tensor<?x10xi32>
}
