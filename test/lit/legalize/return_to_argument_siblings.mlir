// Two results that begin in one tensor get starts of their own: in the memory of one, the other would be overwritten
// before it is stored.
// RUN: morello-opt %s --morello-return-to-argument=entry=filled | FileCheck %s
// RUN: morello-opt %s --morello-return-to-argument=entry=read | FileCheck %s --check-prefix=READ
// RUN: morello-opt %s --morello-return-to-argument=entry=one | FileCheck %s --check-prefix=ONE

!t = tensor<4x4xf32>

// CHECK-LABEL: func.func @filled
// CHECK: %[[FIRST:.*]] = linalg.fill
// CHECK: linalg.matmul {{.*}} outs(%[[FIRST]] :
// CHECK: %[[EMPTY:.*]] = tensor.empty
// CHECK: %[[SECOND:.*]] = linalg.fill {{.*}} outs(%[[EMPTY]] :
// CHECK: linalg.matmul {{.*}} outs(%[[SECOND]] :
func.func @filled(%a: !t, %b: !t) -> (!t, !t) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
  %x = linalg.matmul ins(%a, %b : !t, !t) outs(%zeros : !t) -> !t
  %y = linalg.matmul ins(%b, %a : !t, !t) outs(%zeros : !t) -> !t
  return %x, %y : !t, !t
}

// What is read and can't be made anew at once is copied.
// READ-LABEL: func.func @read
// READ: %[[SUM:.*]] = linalg.add
// READ: linalg.matmul {{.*}} outs(%[[SUM]] :
// READ: %[[COPY:.*]] = linalg.copy {{.*}}morello.own_copy} ins(%[[SUM]] :
// READ: linalg.matmul {{.*}} outs(%[[COPY]] :
func.func @read(%a: !t, %b: !t) -> (!t, !t) {
  %empty = tensor.empty() : !t
  %sum = linalg.add ins(%a, %b : !t, !t) outs(%empty : !t) -> !t
  %x = linalg.matmul ins(%a, %b : !t, !t) outs(%sum : !t) -> !t
  %y = linalg.matmul ins(%b, %a : !t, !t) outs(%sum : !t) -> !t
  return %x, %y : !t, !t
}

// Only one of the two is a result: nothing is stored before the other is read.
// ONE-LABEL: func.func @one
// ONE: linalg.fill
// ONE-NOT: linalg.fill
// ONE-NOT: linalg.copy
// ONE: return
func.func @one(%a: !t, %b: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : !t
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
  %x = linalg.matmul ins(%a, %b : !t, !t) outs(%zeros : !t) -> !t
  %y = linalg.matmul ins(%x, %a : !t, !t) outs(%zeros : !t) -> !t
  return %y : !t
}
