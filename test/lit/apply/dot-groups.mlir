// Dot products of bytes as they lie, four products a lane: both signed, so that 128 is added to lhs and taken off again. One
// row and two columns: three accumulators for each sum, and for each that is taken off, make twelve instructions under way.
// RUN: morello-opt %s --morello-apply=target=sapphirerapids --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func private @morello_dot_dpbusd_1x200x2_
// CHECK:         %[[OFFSET:.*]] = arith.constant dense<-128> : vector<64xi8>
// CHECK:         %[[X:.*]] = vector.load {{.*}} vector<64xi8>
// CHECK:         %[[MOVED:.*]] = arith.xori %[[X]], %[[OFFSET]]
// CHECK:         %[[Y:.*]] = vector.load {{.*}} vector<64xi8>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[MOVED]], %[[Y]])
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[OFFSET]], %[[Y]])
// CHECK:         vector.maskedload {{.*}} vector<64xi8>
// CHECK-COUNT-2: arith.subi {{.*}} vector<16xi32>
func.func @bytes(%a: memref<1x1x200xi8>, %b: memref<1x200x2xi8, strided<[400, 1, 200]>>, %c: memref<1x1x2xi32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 200, 2>,
    operands = ["(i8, L1, row_major)", "(i8, L1, col_major)", "(i32, L1, row_major)"], serial,
    schedule = ["kernel dot_dpbusd"]
  } : (memref<1x1x200xi8>, memref<1x200x2xi8, strided<[400, 1, 200]>>, memref<1x1x2xi32>) -> ()
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 200, 2>,
    operands = ["(i8, L1, row_major)", "(i8, L1, col_major)", "(i32, L1, row_major)"], serial,
    schedule = ["kernel dot_dpbusd"]
  } : (memref<1x1x200xi8>, memref<1x200x2xi8, strided<[400, 1, 200]>>, memref<1x1x2xi32>) -> ()
  return
}

// -----

func.func @rows_of_rhs(%a: memref<1x1x64xi8>, %b: memref<1x64x2xi8>, %c: memref<1x1x2xi32>) {
  // expected-error @below {{rhs needs unit stride along k}}
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 64, 2>,
    operands = ["(i8, L1, row_major)", "(i8, L1, row_major)", "(i32, L1, row_major)"], serial,
    schedule = ["kernel dot_dpbusd"]
  } : (memref<1x1x64xi8>, memref<1x64x2xi8>, memref<1x1x2xi32>) -> ()
  return
}
