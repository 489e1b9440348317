// Bodies that read memrefs at places of their own.
// RUN: morello-opt %s --morello-lift --split-input-file --verify-diagnostics | FileCheck %s

// Rows of every second row, and every third column.
// CHECK-LABEL: func @strided
// CHECK: call @morello_map_5x4_i32_bf16
// CHECK-NOT: linalg
func.func @strided(%x: memref<60x12xbf16>, %ids: memref<5xi32>, %o: memref<5x4xbf16>) {
  %t = memref.subview %x[1, 0] [30, 4] [2, 3] : memref<60x12xbf16> to memref<30x4xbf16, strided<[24, 3], offset: 12>>
  // expected-remark @below {{linalg.generic lifted: Map([5, 4], (i32, GL, [1, 0]), (bf16, GL, [0, 3], axes [24] of [30]), (bf16, GL, [4, 1]), "y = gather(x1, x0)", serial)}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<5xi32>) outs(%o : memref<5x4xbf16>) {
  ^bb0(%id: i32, %old: bf16):
    %i = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %y = memref.load %t[%i, %j] : memref<30x4xbf16, strided<[24, 3], offset: 12>>
    linalg.yield %y : bf16
  }
  return
}

// -----

// The output may be a row that is still to be read.
// CHECK-LABEL: func.func @overlap
// CHECK: linalg.generic
func.func @overlap(%x: memref<30x7xf32>, %ids: memref<30xi64>) {
  // expected-remark @below {{linalg.generic not lifted: the output may overlap an input}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<30xi64>) outs(%x : memref<30x7xf32>) {
  ^bb0(%id: i64, %old: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %y = memref.load %x[%i, %j] : memref<30x7xf32>
    linalg.yield %y : f32
  }
  return
}

// -----

func.func @dynamic(%x: memref<?x7xf32>, %ids: memref<5xi64>, %o: memref<5x7xf32>) {
  // expected-remark @below {{linalg.generic not lifted: it reads elements of memref<?x7xf32>}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : memref<5xi64>) outs(%o : memref<5x7xf32>) {
  ^bb0(%id: i64, %old: f32):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %y = memref.load %x[%i, %j] : memref<?x7xf32>
    linalg.yield %y : f32
  }
  return
}

// -----

func.func @asserts(%x: memref<30xf32>, %ids: memref<5xi64>, %o: memref<5xf32>) {
  %c30 = arith.constant 30 : index
  // expected-remark @below {{linalg.generic not lifted: its body has 'cf.assert'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : memref<5xi64>) outs(%o : memref<5xf32>) {
  ^bb0(%id: i64, %old: f32):
    %i = arith.index_cast %id : i64 to index
    %t = arith.cmpi ult, %i, %c30 : index
    cf.assert %t, "too large"
    %y = memref.load %x[%i] : memref<30xf32>
    linalg.yield %y : f32
  }
  return
}
