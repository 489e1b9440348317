// RUN: morello-opt %s --morello-share=least=1 | FileCheck %s
// RUN: morello-opt %s --morello-share | FileCheck %s --check-prefix=FEW

// Few ops stay where they are.
// FEW-NOT: call

// Equal ops share a function, wherever in their memory the operands begin; what nobody else reads is noalias.
// CHECK-LABEL: func.func @parts
// CHECK: %[[B0:.*]], %[[O0:.*]], %{{.*}}, %{{.*}} = memref.extract_strided_metadata
// CHECK: call @morello_op_generic_0(%[[B0]], %[[O0]], %[[OUT:.*]]) : (memref<f32>, index, memref<4xf32>) -> ()
// CHECK: %[[B1:.*]], %[[O1:.*]], %{{.*}}, %{{.*}} = memref.extract_strided_metadata
// CHECK: call @morello_op_generic_0(%[[B1]], %[[O1]], %[[OUT]])
func.func @parts(%x: memref<16xf32>, %y: memref<4xf32>) {
  %two = arith.constant 2.0 : f32
  %a = memref.subview %x[4] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: 4>>
  %b = memref.subview %x[8] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: 8>>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32, strided<[1], offset: 4>>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %two : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%b : memref<4xf32, strided<[1], offset: 8>>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %two : f32
    linalg.yield %0 : f32
  }
  return
}

// In place: one argument. Values that are no constants are arguments.
// CHECK-LABEL: func.func @in_place
// CHECK: call @[[ADD:morello_op_generic_[0-9]+]](%{{.*}}, %{{.*}}) : (memref<4xf32>, f32) -> ()
func.func @in_place(%y: memref<4xf32>, %s: f32) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%y : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// An output that an input may overlap promises nothing.
// CHECK-LABEL: func.func @overlap
// CHECK: call @[[COPY:morello_op_copy_[0-9]+]]
func.func @overlap(%x: memref<8xf32>) {
  %a = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %b = memref.subview %x[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  linalg.copy ins(%a : memref<4xf32, strided<[1]>>) outs(%b : memref<4xf32, strided<[1], offset: 2>>)
  return
}

// Dynamic sizes stay.
// CHECK-LABEL: func.func @dynamic
// CHECK-NEXT: linalg.fill
func.func @dynamic(%x: memref<?xf32>, %s: f32) {
  linalg.fill ins(%s : f32) outs(%x : memref<?xf32>)
  return
}

// CHECK: func.func private @morello_op_generic_0(%[[BASE:.*]]: memref<f32>, %[[OFFSET:.*]]: index, %{{.*}}: memref<4xf32> {morello.unaliased})
// CHECK-SAME: passthrough = ["noinline"]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [4], strides: [1]
// CHECK: arith.constant 2.0
// CHECK: linalg.generic
// CHECK: func.func private @[[ADD]](%{{.*}}: memref<4xf32> {morello.unaliased}, %{{.*}}: f32)
// CHECK: func.func private @[[COPY]](
// CHECK-NOT: unaliased
