// RUN: morello-opt %s --morello-legalize-float | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.truncf %{{.*}} : vector<4xf64> to vector<4xf32>
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// What LLVM can do stays.
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @f(%x: f64, %v: vector<4xf64>, %y: f32) -> (f16, vector<4xbf16>, f32, f16) {
  %a = arith.truncf %x : f64 to f16
  %b = arith.truncf %v : vector<4xf64> to vector<4xbf16>
  %c = arith.truncf %x : f64 to f32
  %d = arith.truncf %y : f32 to f16
  return %a, %b, %c, %d : f16, vector<4xbf16>, f32, f16
}

// exp(x) - 1 is 0 for small x: the library has better.
// CHECK-LABEL: func.func @expm1_of_numbers
// CHECK: call @expm1(%{{.*}}) : (f64) -> f64
// CHECK: call @expm1f(%{{.*}}) : (f32) -> f32
// CHECK: math.expm1 %{{.*}} : vector<4xf32>
func.func @expm1_of_numbers(%x: f64, %y: f32, %v: vector<4xf32>) -> (f64, f32, vector<4xf32>) {
  %a = math.expm1 %x : f64
  %b = math.expm1 %y : f32
  %c = math.expm1 %v : vector<4xf32>
  return %a, %b, %c : f64, f32, vector<4xf32>
}
