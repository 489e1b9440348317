// Rows that numbers name are read by the nest that needs them; what a body asserts is looked at before, by itself.
// RUN: morello-opt %s --morello-fuse --split-input-file | FileCheck %s
// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-fuse,morello-bufferize,morello-lift)' --split-input-file | FileCheck %s --check-prefix=LIFT

// CHECK-LABEL: func @embedding
// CHECK: %[[ALL:.*]]:2 = scf.execute_region
// CHECK: and(cmp(slt, x0, 30:i64))
// CHECK: tensor.extract %[[ALL]]#0[]
// CHECK-NEXT: cf.assert %{{.*}}, "too large"
// CHECK: cf.assert %{{.*}}, "negative"
// CHECK: scf.execute_region
// CHECK: body = "y = add(x2, gather(x1, umin(x0, 29:i64)))"
// CHECK-SAME: "i64 0.0 [d0]", "f32 0.2 [?, d1]", "f32 1.1 [d0, d1]"
// CHECK-NOT: cf.assert
// LIFT-LABEL: func @embedding
// LIFT: call @morello_reduce_5_i64_i8
// LIFT: cf.assert
// LIFT: call @morello_map_5x7_i64_f32
// LIFT: operands = ["(i64, GL, [1, 0])", "(f32, GL, [0, 1], axes [7] of [30])", "(f32, GL, [7, 1])", "(f32, GL, [7, 1])"]
func.func @embedding(%table: tensor<30x7xf32>, %ids: tensor<5xi64>, %x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %c30 = arith.constant 30 : index
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<5x7xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<5xi64>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %small = arith.cmpi slt, %i, %c30 : index
    cf.assert %small, "too large"
    %large = arith.cmpi sge, %id, %c0 : i64
    cf.assert %large, "negative"
    %y = tensor.extract %table[%i, %j] : tensor<30x7xf32>
    linalg.yield %y : f32
  } -> tensor<5x7xf32>
  %sum = linalg.add ins(%rows, %x : tensor<5x7xf32>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %sum : tensor<5x7xf32>
}

// -----

// A place that is known is no place of a table's.
// CHECK-LABEL: func @known
// CHECK: body = "y = x0"
// CHECK-SAME: "f32 0.1 [d0 * 2 + 3, d1]"
func.func @known(%table: tensor<30x7xf32>) -> tensor<5x7xf32> {
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %zero = arith.constant 0 : index
  %last = arith.constant 29 : index
  %e = tensor.empty() : tensor<5x7xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<5x7xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.muli %i, %two : index
    %at = arith.addi %d, %three : index
    %low = arith.maxsi %at, %zero : index
    %high = arith.minsi %low, %last : index
    %y = tensor.extract %table[%high, %j] : tensor<30x7xf32>
    linalg.yield %y : f32
  } -> tensor<5x7xf32>
  return %rows : tensor<5x7xf32>
}

// -----

// A table that is made by another op is there before: its op is no part of the nest.
// CHECK-LABEL: func @made
// CHECK-COUNT-2: scf.execute_region
func.func @made(%x: tensor<6x7xf32>, %ids: tensor<6xi32>) -> tensor<6x7xf32> {
  %e = tensor.empty() : tensor<6x7xf32>
  %table = linalg.exp ins(%x : tensor<6x7xf32>) outs(%e : tensor<6x7xf32>) -> tensor<6x7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %table : tensor<6xi32>, tensor<6x7xf32>) outs(%e : tensor<6x7xf32>) {
  ^bb0(%id: i32, %own: f32, %o: f32):
    %i = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %other = tensor.extract %table[%i, %j] : tensor<6x7xf32>
    %s = arith.addf %own, %other : f32
    linalg.yield %s : f32
  } -> tensor<6x7xf32>
  return %y : tensor<6x7xf32>
}

// -----

// An assertion about what a table holds stays where it is, with its op.
// CHECK-LABEL: func @of_elements
// CHECK-NOT: scf.execute_region
// CHECK: tensor.extract
// CHECK-NEXT: arith.cmpf
// CHECK-NEXT: cf.assert
func.func @of_elements(%table: tensor<30xf32>, %ids: tensor<5xi64>) -> tensor<5xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %y = tensor.extract %table[%i] : tensor<30xf32>
    %t = arith.cmpf oge, %y, %c0 : f32
    cf.assert %t, "negative"
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %rows : tensor<5xf32>
}
