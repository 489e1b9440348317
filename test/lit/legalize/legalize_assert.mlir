// RUN: morello-opt %s --morello-legalize-assert | FileCheck %s

// CHECK-LABEL: func.func private @check
// CHECK-SAME: %[[STATUS:[^:]*]]: memref<i64>)
// CHECK: cf.cond_br %{{.*}}, ^[[ON:.*]], ^[[FAIL:.*]]
// CHECK: ^[[ON]]:
// CHECK: ^[[FAIL]]:
// CHECK: %[[NUMBER:.*]] = arith.constant 1 : i64
// CHECK: memref.store %[[NUMBER]], %[[STATUS]][]
// CHECK: ub.poison : index
// CHECK: return
func.func private @check(%n: index) -> index {
  %c3 = arith.constant 3 : index
  %ok = arith.cmpi slt, %n, %c3 : index
  cf.assert %ok, "first"
  %two = arith.addi %n, %n : index
  return %two : index
}

// The caller asks after the call, and passes the number on.
// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[STATUS:[^:]*]]: memref<i64>) -> index attributes {morello.assertions = ["first", "second"]}
// CHECK: call @check(%{{.*}}, %[[STATUS]])
// CHECK: memref.load %[[STATUS]][]
// CHECK: cf.cond_br
func.func @f(%n: index, %ok: i1) -> index {
  %r = call @check(%n) : (index) -> index
  cf.assert %ok, "second"
  return %r : index
}

// CHECK-LABEL: func.func @untouched(%{{[^:]*}}: index) -> index {
func.func @untouched(%n: index) -> index {
  return %n : index
}
