// RUN: morello-opt %s --morello-vector-math | FileCheck %s

// CHECK-LABEL: func.func @flattened
// CHECK: vector.shape_cast %{{.*}} : vector<2x3xf32> to vector<6xf32>
// CHECK-NOT: math.exp
// CHECK: vector.shape_cast %{{.*}} : vector<6xf32> to vector<2x3xf32>
func.func @flattened(%x: vector<2x3xf32>) -> vector<2x3xf32> {
  %y = math.exp %x : vector<2x3xf32>
  return %y : vector<2x3xf32>
}
// Narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.extf %{{.*}} : vector<7xbf16> to vector<7xf32>
// CHECK-NOT: math.tanh
// CHECK: arith.truncf %{{.*}} : vector<7xf32> to vector<7xbf16>
// CHECK-NOT: truncf
func.func @narrow(%x: vector<7xbf16>) -> vector<7xbf16> {
  %y = math.tanh %x : vector<7xbf16>
  return %y : vector<7xbf16>
}
// Huge arguments go to the library.
// CHECK-LABEL: func.func @reduced
// CHECK: scf.if
// CHECK-NEXT: math.sin %{{.*}} {morello.library} : vector<8xf32>
// CHECK-NOT: math.sin
func.func @reduced(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.sin %x : vector<8xf32>
  return %y : vector<8xf32>
}
// CHECK-LABEL: func.func @stays
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : vector<4xf64>
// CHECK-NEXT: math.exp %{{.*}} : vector<[4]xf32>
// CHECK-NEXT: math.exp %{{.*}} {morello.library} : vector<8xf32>
// CHECK-NEXT: math.atan %{{.*}} : vector<8xf32>
func.func @stays(%a: f32, %b: vector<4xf64>, %c: vector<[4]xf32>, %d: vector<8xf32>) {
  %0 = math.exp %a : f32
  %1 = math.exp %b : vector<4xf64>
  %2 = math.exp %c : vector<[4]xf32>
  %3 = math.exp %d {morello.library} : vector<8xf32>
  %4 = math.atan %d : vector<8xf32>
  return
}
