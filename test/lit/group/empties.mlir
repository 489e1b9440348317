// Ops that share a tensor.empty get one each, so that nothing else is put where the results of one are; elementwise ops
// that follow one another by single uses keep one.
// RUN: morello-opt %s --morello-group | FileCheck %s --check-prefix=GROUP
// RUN: morello-opt %s --morello-group --morello-bufferize --morello-lift --mlir-print-local-scope | FileCheck %s --check-prefix=LIFT

#id = affine_map<(i, j) -> (i, j)>

// GROUP-LABEL:   func @residual
// GROUP-COUNT-3: tensor.empty
// GROUP-NOT:     tensor.empty
// GROUP:         return
// LIFT-LABEL:    func.func @residual
// LIFT-COUNT-3:  call @morello_matmul
// LIFT-NOT:      linalg
// LIFT-NOT:      call
// LIFT:          return
func.func @residual(%a: tensor<4x6xf32>, %b: tensor<6x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<4x6xf32>, tensor<6x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %1 : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %3 = linalg.matmul ins(%2, %b : tensor<4x6xf32>, tensor<6x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// In a loop the tensor stays the one from outside.
// GROUP-LABEL: func @loop
// GROUP:         tensor.empty
// GROUP:         scf.for
// GROUP-NOT:     tensor.empty
// GROUP:         return
func.func @loop(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<4x6xf32>
  %1 = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %0) -> tensor<4x6xf32> {
    %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%t : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
    ^bb0(%x: f32, %out: f32):
      %s = arith.addf %x, %x : f32
      linalg.yield %s : f32
    } -> tensor<4x6xf32>
    scf.yield %2 : tensor<4x6xf32>
  }
  return %1 : tensor<4x6xf32>
}

// Each result is read once, where it is: one tensor for the product and for what follows, whoever makes another.
// GROUP-LABEL: func @in_place
// GROUP:         %[[E:.*]] = tensor.empty
// GROUP-NOT:     tensor.empty
// GROUP:         linalg.generic {{.*}} outs(%[[E]] :
// GROUP:         linalg.generic {{.*}} outs(%[[E]] :
// GROUP:         return
func.func @in_place(%a: tensor<4x6xf32>, %b: tensor<6x6xf32>) -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x6xf32>) outs(%e2 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.mulf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// What is read twice, or elsewhere than it is, is not overwritten.
// GROUP-LABEL: func @not_in_place
// GROUP-COUNT-3: tensor.empty
// GROUP:         return
func.func @not_in_place(%a: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
  %e = tensor.empty() : tensor<6x6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.mulf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.mulf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  return %0, %2 : tensor<6x6xf32>, tensor<6x6xf32>
}
