// A reduction of constants is in no nest that reads something else: by itself it needs to run once.
// RUN: morello-opt %s --morello-fuse --split-input-file | FileCheck %s

// CHECK-LABEL: func @apart
// CHECK: scf.execute_region
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: scf.execute_region
// CHECK-NOT: "reduction"
// CHECK: arith.mulf
func.func @apart(%x: tensor<9x33xf32>, %w: tensor<9x33xf32> {morello.constant}) -> tensor<9x33xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%w : tensor<9x33xf32>) outs(%f : tensor<9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<9xf32>
  %e2 = tensor.empty() : tensor<9x33xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<9x33xf32>, tensor<9xf32>) outs(%e2 : tensor<9x33xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<9x33xf32>
  return %r : tensor<9x33xf32>
}

// -----

// Of an input that may change it is part of one nest; so is what constants alone are read by.
// CHECK-LABEL: func @together
// CHECK: scf.execute_region
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: scf.execute_region
// CHECK: arith.maximumf
// CHECK: arith.divf
// CHECK-NOT: scf.execute_region
func.func @together(%x: tensor<9x33xf32>, %w: tensor<9x33xf32> {morello.constant}) -> (tensor<9x33xf32>, tensor<9x33xf32>) {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %e2 = tensor.empty() : tensor<9x33xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<9x33xf32>) outs(%f : tensor<9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%w, %s : tensor<9x33xf32>, tensor<9xf32>) outs(%e2 : tensor<9x33xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<9x33xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%w : tensor<9x33xf32>) outs(%f : tensor<9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<9xf32>
  %r1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%w, %s1 : tensor<9x33xf32>, tensor<9xf32>) outs(%e2 : tensor<9x33xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<9x33xf32>
  return %r, %r1 : tensor<9x33xf32>, tensor<9x33xf32>
}
