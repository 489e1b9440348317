// What is no contraction, or none of ours, gets no tag; the reason is precise.
// RUN: morello-opt %s --morello-group=explain --split-input-file --verify-diagnostics | FileCheck %s
// CHECK-NOT: morello.group

func.func @conv(%a: memref<8xf32>, %b: memref<3xf32>, %c: memref<6xf32>) {
  // expected-remark @below {{linalg.conv_1d not lifted: a window slides through the first input, and no loop of the other one shares it}}
  linalg.conv_1d ins(%a, %b : memref<8xf32>, memref<3xf32>) outs(%c : memref<6xf32>)
  return
}

// -----

func.func @elementwise(%a: memref<8xf32>, %b: memref<8xf32>) {
  // expected-remark @below {{linalg.exp not lifted: not a contraction: it has 1 input and 1 output}}
  linalg.exp ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
  return
}

// -----

func.func @softmax(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
  // expected-remark @below {{linalg.softmax not lifted: it is not a contraction}}
  linalg.softmax dimension(1) ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>)
  return
}

// -----

#v = affine_map<(m, k) -> (k)>
#a = affine_map<(m, k) -> (m, k)>
#o = affine_map<(m, k) -> (m)>

func.func @subtracts(%a: memref<4x5xf32>, %v: memref<5xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{the body is not out + lhs * rhs}}
  linalg.generic {indexing_maps = [#a, #v, #o], iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<5xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.subf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

#v = affine_map<(m, k) -> (k)>
#a = affine_map<(m, k) -> (m, k)>
#o = affine_map<(m, k) -> (m)>

func.func @other_factor(%a: memref<4x5xf32>, %v: memref<5xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{the body is not out + lhs * rhs}}
  linalg.generic {indexing_maps = [#a, #v, #o], iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<5xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %x : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

#v = affine_map<(m, k) -> (k)>
#a = affine_map<(m, k) -> (m, k)>
#o = affine_map<(m, k) -> (m)>

func.func @extra_op(%a: memref<4x5xf32>, %v: memref<5xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{the body is not out + lhs * rhs}}
  linalg.generic {indexing_maps = [#a, #v, #o], iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<5xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %e = math.exp %x : f32
    %p = arith.mulf %e, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

#v = affine_map<(m, k) -> (k)>
#a = affine_map<(m, k) -> (m, k)>
#o = affine_map<(m, k) -> (m)>

func.func @uses_index(%a: memref<4x5xf32>, %v: memref<5xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{the body is not out + lhs * rhs}}
  linalg.generic {indexing_maps = [#a, #v, #o], iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<5xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %i = linalg.index 0 : index
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

#d = affine_map<(i) -> (i)>

func.func @nothing_reduced(%a: memref<5xf32>, %v: memref<5xf32>, %o: memref<5xf32>) {
  // expected-remark @below {{not a contraction: no loop is reduced}}
  linalg.generic {indexing_maps = [#d, #d, #d], iterator_types = ["parallel"]}
      ins(%a, %v : memref<5xf32>, memref<5xf32>) outs(%o : memref<5xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @reduced_in_one_input(%a: memref<4x5xf32>, %v: memref<4xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{not a contraction: loop d1 indexes the first input alone}}
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<4xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @diagonal(%a: memref<5x5xf32>, %v: memref<5xf32>, %o: memref<f32>) {
  // expected-remark @below {{not a contraction: the first input is indexed twice by loop d0}}
  linalg.generic {indexing_maps = [affine_map<(k) -> (k, k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
      iterator_types = ["reduction"]}
      ins(%a, %v : memref<5x5xf32>, memref<5xf32>) outs(%o : memref<f32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @slice_of_output(%a: memref<4x5xf32>, %v: memref<5xf32>, %o: memref<2x4xf32>) {
  // expected-remark @below {{not a contraction: only a slice of the output is written}}
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (0, m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%a, %v : memref<4x5xf32>, memref<5xf32>) outs(%o : memref<2x4xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @scalar_input(%a: f32, %v: memref<5xf32>, %o: memref<f32>) {
  // expected-remark @below {{the first input is of type f32, neither a ranked tensor nor a memref}}
  linalg.generic {indexing_maps = [affine_map<(k) -> ()>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
      iterator_types = ["reduction"]}
      ins(%a, %v : f32, memref<5xf32>) outs(%o : memref<f32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// -----

func.func @integers(%a: memref<4x5xi4>, %b: memref<5x6xi4>, %c: memref<4x6xi8>) {
  // expected-remark @below {{element types i4 x i4 -> i8: no kernel adds these up}}
  linalg.matmul ins(%a, %b : memref<4x5xi4>, memref<5x6xi4>) outs(%c : memref<4x6xi8>)
  return
}

// -----

func.func @unsigned_shorts(%a: memref<4x5xi16>, %b: memref<5x6xi16>, %c: memref<4x6xi32>) {
  // expected-remark @below {{element types i16 x i16 -> i32: no kernel adds these up}}
  linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : memref<4x5xi16>, memref<5x6xi16>) outs(%c : memref<4x6xi32>)
  return
}

// -----

func.func @bits(%a: memref<4x5xi1>, %b: memref<5x6xi1>, %c: memref<4x6xi1>) {
  // expected-remark @below {{element types i1 x i1 -> i1: no kernel adds these up}}
  linalg.matmul ins(%a, %b : memref<4x5xi1>, memref<5x6xi1>) outs(%c : memref<4x6xi1>)
  return
}

// -----

func.func @dynamic(%a: tensor<?x5xf32>, %b: tensor<5x6xf32>, %c: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-remark @below {{the first input has dynamic sizes (tensor<?x5xf32>)}}
  %0 = linalg.matmul ins(%a, %b : tensor<?x5xf32>, tensor<5x6xf32>) outs(%c : tensor<?x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}

// -----

func.func @empty(%a: tensor<4x0xf32>, %b: tensor<0x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-remark @below {{the first input is empty (tensor<4x0xf32>)}}
  %0 = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

#csr = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>

func.func @sparse(%a: tensor<4x5xf32, #csr>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-remark @below {{the first input has an encoding}}
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32, #csr>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
