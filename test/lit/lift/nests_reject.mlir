// What is no nest, and why.
// RUN: morello-opt %s --morello-lift --split-input-file --verify-diagnostics

func.func @overlap(%x: memref<9xf32>) {
  %a = memref.subview %x[0] [8] [1] : memref<9xf32> to memref<8xf32, strided<[1]>>
  %b = memref.subview %x[1] [8] [1] : memref<9xf32> to memref<8xf32, strided<[1], offset: 1>>
  // expected-remark @below {{linalg.exp not lifted: the output may overlap an input}}
  linalg.exp ins(%b : memref<8xf32, strided<[1], offset: 1>>) outs(%a : memref<8xf32, strided<[1]>>)
  return
}

// -----

func.func @transposed_in_place(%x: memref<4x4xf32>) {
  // expected-remark @below {{linalg.transpose not lifted: the output may overlap an input}}
  linalg.transpose ins(%x : memref<4x4xf32>) outs(%x : memref<4x4xf32>) permutation = [1, 0]
  return
}

// -----

func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) {
  // expected-remark @below {{linalg.exp not lifted: it has dynamic sizes (memref<?xf32>)}}
  linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// -----

func.func @empty(%x: memref<0x4xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{linalg.reduce not lifted: it is empty (memref<0x4xf32>)}}
  linalg.reduce { arith.addf } ins(%x : memref<0x4xf32>) outs(%o : memref<4xf32>) dimensions = [0]
  return
}

// -----

func.func @backwards(%x: memref<8xf32>, %o: memref<8xf32>) {
  // expected-remark @below {{linalg.generic not lifted: an operand is read backwards}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 7)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%o : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// With NaNs, this maximum depends on the order of the elements; without, it would be lifted.
func.func @order(%x: memref<4x8xf32>, %o: memref<4xf32>) {
  // expected-remark @below {{linalg.generic not lifted: it is no reduction that we know}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    %y = arith.select %c, %a, %b : f32
    linalg.yield %y : f32
  }
  return
}

// -----

func.func @types(%x: memref<8xcomplex<f32>>, %o: memref<8xcomplex<f32>>) {
  // expected-remark @below {{linalg.generic not lifted: its body has 'complex.neg'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<8xcomplex<f32>>) outs(%o : memref<8xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>):
    %y = complex.neg %a : complex<f32>
    linalg.yield %y : complex<f32>
  }
  return
}

// -----

func.func @scalar(%s: f32, %o: memref<8xf32>) {
  // expected-remark @below {{linalg.fill not lifted: its body reads a scalar that is no constant}}
  linalg.fill ins(%s : f32) outs(%o : memref<8xf32>)
  return
}

// -----

// A function is right whatever its attribute says; its ops are then lifted by themselves.
func.func private @nest(%x: memref<4xf32>, %y: memref<4xf32>) attributes {morello.nest = {body = "y = exp(x0", dims = array<i64: 4>, scan = array<i64>, operands = ["f32 0 [d0]", "f32 1 [d0]"]}} {
  // expected-remark @below {{linalg.exp lifted}}
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

func.func @malformed(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-remark @below {{not lifted as one nest: its attribute 'morello.nest' is malformed}}
  call @nest(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
