// Single ops on memrefs become nests: what they compute, where their operands are, and which memory is shared.
// RUN: morello-opt %s --morello-lift --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @strided
// CHECK: call @morello_map_6x5_f32(%{{.*}}, %{{.*}}, %{{.*}}) : (memref<f32>, memref<f32>, index) -> ()
// CHECK-NOT: linalg
func.func @strided(%x: memref<12x10xf32>, %o: memref<6x5xf32>) {
  %v = memref.subview %x[1, 0] [6, 5] [2, 2] : memref<12x10xf32> to memref<6x5xf32, strided<[20, 2], offset: 10>>
  // expected-remark @below {{linalg.exp lifted: Map([6, 5], (f32, GL, [20, 2]), (f32, GL, [5, 1]), "y = exp(x0)", serial)}}
  linalg.exp ins(%v : memref<6x5xf32, strided<[20, 2], offset: 10>>) outs(%o : memref<6x5xf32>)
  return
}

// -----

// A fill of any constant, untouched, is what a reduction starts from.
// CHECK-LABEL: func @fill
// CHECK-NOT: linalg
func.func @fill(%x: memref<4x5xf32>, %o: memref<4xf32>) {
  %c = arith.constant 2.0 : f32
  linalg.fill ins(%c : f32) outs(%o : memref<4xf32>)
  // expected-remark @below {{linalg.reduce lifted: Reduce([4, 5 scan], (f32, GL, [5, 1]), (f32, GL, [1, 0]), "s = sum(x0); y = add(s, 2.0:f32)", serial)}}
  linalg.reduce { arith.addf } ins(%x : memref<4x5xf32>) outs(%o : memref<4xf32>) dimensions = [1]
  return
}

// -----

// In place, element for element.
func.func @in_place(%x: memref<4x5xf32>) {
  // expected-remark @below {{linalg.exp lifted: Map([20], (f32, GL, [1]), (f32, GL, [1], is x0), "y = exp(x0)", serial)}}
  linalg.exp ins(%x : memref<4x5xf32>) outs(%x : memref<4x5xf32>)
  return
}

// -----

// Truth values lie in bytes.
// CHECK: func private @morello_map_9_i8_f32
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : memref<i1> to memref<i8>
func.func @mask(%m: memref<9xi1>, %x: memref<9xf32>, %o: memref<9xf32>) {
  %z = arith.constant 0.0 : f32
  // expected-remark @below {{"y = select(cmp(ne, x0, 0:i8), x1, 0.0:f32)"}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%m, %x : memref<9xi1>, memref<9xf32>) outs(%o : memref<9xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32):
    %y = arith.select %a, %b, %z : f32
    linalg.yield %y : f32
  }
  return
}

// -----

// Sums of narrow floats are added up wide and rounded once.
func.func @narrow(%x: memref<4x5xbf16>, %o: memref<4xbf16>) {
  // expected-remark @below {{"s = sum(cast(x0, f32)); y = cast(add(s, cast(x1, f32)), bf16)"}}
  linalg.reduce { arith.addf } ins(%x : memref<4x5xbf16>) outs(%o : memref<4xbf16>) dimensions = [1]
  return
}
