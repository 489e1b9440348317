// Results that are computed from one another, in any order, keep apart: the first product is made in the memory of the
// second, and has to leave it before the second one comes in.
// RUN: morello-opt %s --morello-return-to-argument=entry=both | FileCheck %s
// RUN: morello-opt %s --morello-return-to-argument=entry=mixed | FileCheck %s --check-prefix=MIXED

!t = tensor<4x4xf32>

// CHECK-LABEL: func.func @both
// CHECK-SAME: %[[A:[^:]*]]: tensor<4x4xf32> {{.*}}, %[[SECOND:[^:]*]]: memref<4x4xf32> {morello.result = 0 : i64, morello.unaliased}, %[[FIRST:[^:]*]]: memref<4x4xf32> {morello.result = 1 : i64, morello.unaliased})
// CHECK: %[[X:.*]] = linalg.matmul
// CHECK: %[[Y:.*]] = linalg.matmul
// CHECK: materialize_in_destination %[[X]] in restrict writable %[[FIRST]]
// CHECK: materialize_in_destination %[[Y]] in restrict writable %[[SECOND]]
func.func @both(%a: !t) -> (!t, !t) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
  %x = linalg.matmul ins(%a, %a : !t, !t) outs(%zeros : !t) -> !t
  %y = linalg.matmul ins(%a, %a : !t, !t) outs(%x : !t) -> !t
  return %y, %x : !t, !t
}

// A result that stays where it was made must not be made in the memory of another.
// MIXED-LABEL: func.func @mixed
// MIXED: %[[X:.*]] = linalg.matmul
// MIXED: %[[Y:.*]] = linalg.matmul
// MIXED: %[[COPY:.*]] = linalg.copy {{.*}} ins(%[[Y]]
// MIXED: materialize_in_destination %[[COPY]] in
func.func @mixed(%a: !t) -> (!t, tensor<?x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
  %x = linalg.matmul ins(%a, %a : !t, !t) outs(%zeros : !t) -> !t
  %y = linalg.matmul ins(%a, %a : !t, !t) outs(%x : !t) -> !t
  %cast = tensor.cast %x : !t to tensor<?x4xf32>
  return %y, %cast : !t, tensor<?x4xf32>
}
