// RUN: morello-opt %s --split-input-file --pass-pipeline='builtin.module(morello-group)' 2>/dev/null | FileCheck %s

// A scalar that an op takes, and one that its body reads from outside: operands without dims.
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ONE:.*]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @both
// CHECK: %[[TAKEN:.*]] = tensor.from_elements %arg1 : tensor<f32>
// CHECK: %[[READ:.*]] = tensor.from_elements %arg2 : tensor<f32>
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ONE]], #[[ONE]], #[[ALL]]]{{.*}}ins(%arg0, %[[TAKEN]], %[[READ]]
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[T:.*]]: f32, %[[R:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %[[T]]
// CHECK-NEXT: arith.addf %[[M]], %[[R]]
#all = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
func.func @both(%x: tensor<3x5xf32>, %s: f32, %t: f32) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<3x5xf32>, f32) outs(%e : tensor<3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %m, %t : f32
    linalg.yield %n : f32
  } -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// -----

// What is filled with; where that was in a tensor, it is read there.
// CHECK-LABEL: func.func @fill
// CHECK-NOT: tensor.from_elements
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<f32>)
func.func @fill(%t: tensor<f32>) -> tensor<3x5xf32> {
  %s = tensor.extract %t[] : tensor<f32>
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.fill ins(%s : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// -----

// Constants, sizes that only run time knows, numbers of type index, and memrefs stay as they are.
// CHECK-LABEL: func.func @constant
// CHECK: linalg.fill
// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.fill
// CHECK-LABEL: func.func @index
// CHECK: linalg.generic {{.*}} outs(
// CHECK-LABEL: func.func @memory
// CHECK: linalg.fill
func.func @constant() -> tensor<3x5xf32> {
  %s = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.fill ins(%s : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}
func.func @dynamic(%e: tensor<?x5xf32>, %s: f32) -> tensor<?x5xf32> {
  %r = linalg.fill ins(%s : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}
func.func @index(%n: index) -> tensor<5xi64> {
  %e = tensor.empty() : tensor<5xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<5xi64>) {
  ^bb0(%c: i64):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %n : index
    %v = arith.index_cast %j : index to i64
    linalg.yield %v : i64
  } -> tensor<5xi64>
  return %r : tensor<5xi64>
}
func.func @memory(%m: memref<3x5xf32>, %s: f32) {
  linalg.fill ins(%s : f32) outs(%m : memref<3x5xf32>)
  return
}
