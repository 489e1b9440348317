// What a nest makes of constants alone is kept in a buffer of the module, which the first call fills.
// RUN: morello-opt %s --morello-lift --split-input-file | FileCheck %s
// RUN: morello-opt %s --morello-lift=pack-constants=false --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: morello-opt %s --morello-lift=pack-limit=0 --split-input-file | FileCheck %s --check-prefix=OFF

// OFF-NOT: morello_once

// The header, the state in it, and what is copied once it is complete.
// CHECK: memref.global "private" @morello_once_0 : memref<140xi8> = dense<0> {alignment = 64 : i64}
// CHECK-LABEL: func @sums
// CHECK-NEXT: %[[BUFFER:.*]] = memref.get_global @morello_once_0
// CHECK: %[[SUMS:.*]] = memref.view %[[BUFFER]][%c64{{.*}}][] : memref<140xi8> to memref<19xi32>
// CHECK: %[[STATE:.*]] = llvm.load %[[AT:.*]] atomic acquire {alignment = 4 : i64} : !llvm.ptr -> i32
// CHECK: %[[EMPTY:.*]] = arith.cmpi eq, %[[STATE]], %c0
// CHECK: scf.if %[[EMPTY]] {
// CHECK-NEXT: %[[ROOM:.*]] = memref.alloc() {alignment = 64 : i64} : memref<19xi32>
// CHECK: func.call @morello_reduce_19x37_i8_i32(
// CHECK-NEXT: memref.copy %[[ROOM]], %[[SUMS]]
// CHECK: llvm.store %c1{{.*}}, %[[AT]] atomic release {alignment = 4 : i64} : i32, !llvm.ptr
// CHECK: memref.dealloc %[[ROOM]]
// CHECK: } {morello.once}
// CHECK-NOT: memref.alloc
// CHECK: extract_strided_metadata %[[SUMS]]
// CHECK: call @morello_map_7x19_i32
// CHECK-NOT: dealloc
// CHECK: return
func.func @sums(%x: memref<7x19xi32>, %w: memref<37x19xi8> {morello.constant}, %y: memref<7x19xi32>) {
  %z = arith.constant 0 : i32
  %s = memref.alloc() : memref<19xi32>
  linalg.fill ins(%z : i32) outs(%s : memref<19xi32>)
  linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
    ins(%w : memref<37x19xi8>) outs(%s : memref<19xi32>) {
  ^bb0(%v: i8, %o: i32):
    %e = arith.extsi %v : i8 to i32
    %t = arith.addi %o, %e : i32
    linalg.yield %t : i32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : memref<7x19xi32>, memref<19xi32>) outs(%y : memref<7x19xi32>) {
  ^bb0(%v: i32, %w0: i32, %o: i32):
    %t = arith.subi %v, %w0 : i32
    linalg.yield %t : i32
  }
  memref.dealloc %s : memref<19xi32>
  return
}

// -----

// What follows from it is made once as well, after it. Views of a constant global are constants.
// CHECK-DAG: memref.global "private" @[[FIRST:morello_once_.*]] : memref<140xi8>
// CHECK-DAG: memref.global "private" @[[SECOND:morello_once_.*]] : memref<140xi8>
// CHECK-LABEL: func @two
// CHECK: scf.if
// CHECK: call @morello_reduce_19x37_f32
// CHECK: scf.if
// CHECK: call @morello_map_19_f32
// CHECK: call @morello_map_7x19_f32
memref.global "private" constant @w : memref<2x37x19xf32> = dense<1.5>
func.func @two(%x: memref<7x19xf32>, %y: memref<7x19xf32>) {
  %z = arith.constant 0.0 : f32
  %g = memref.get_global @w : memref<2x37x19xf32>
  %w = memref.subview %g[1, 0, 0] [1, 37, 19] [1, 1, 1] : memref<2x37x19xf32> to memref<37x19xf32, strided<[19, 1], offset: 703>>
  %s = memref.alloc() : memref<19xf32>
  %q = memref.alloc() : memref<19xf32>
  linalg.fill ins(%z : f32) outs(%s : memref<19xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]}
    ins(%w : memref<37x19xf32, strided<[19, 1], offset: 703>>) outs(%s : memref<19xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %o, %v : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%s : memref<19xf32>) outs(%q : memref<19xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = math.sqrt %v : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %q : memref<7x19xf32>, memref<19xf32>) outs(%y : memref<7x19xf32>) {
  ^bb0(%v: f32, %w0: f32, %o: f32):
    %t = arith.divf %v, %w0 : f32
    linalg.yield %t : f32
  }
  memref.dealloc %s : memref<19xf32>
  memref.dealloc %q : memref<19xf32>
  return
}
