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
// CHECK-COUNT-8: math.sin %{{.*}} : f32
// CHECK-NOT: math.sin
// CHECK: return
func.func @reduced(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.sin %x : vector<8xf32>
  return %y : vector<8xf32>
}
// So do f64, and functions without a polynomial.
// CHECK-LABEL: func.func @library
// CHECK-COUNT-4: math.erf %{{.*}} : f64
// CHECK-COUNT-3: math.atan %{{.*}} : f32
// CHECK: return
func.func @library(%b: vector<4xf64>, %d: vector<3xf32>) -> (vector<4xf64>, vector<3xf32>) {
  %1 = math.erf %b : vector<4xf64>
  %4 = math.atan %d : vector<3xf32>
  return %1, %4 : vector<4xf64>, vector<3xf32>
}
// CHECK-LABEL: func.func @stays
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : vector<[4]xf32>
// CHECK-NEXT: math.sqrt %{{.*}} : vector<8xf32>
func.func @stays(%a: f32, %c: vector<[4]xf32>, %d: vector<8xf32>) {
  %0 = math.exp %a : f32
  %1 = math.exp %c : vector<[4]xf32>
  %2 = math.sqrt %d : vector<8xf32>
  return
}
