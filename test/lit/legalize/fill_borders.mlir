// Of a buffer whose interior is copied from elsewhere only the borders are filled.
// RUN: morello-opt %s --morello-fill-borders | FileCheck %s

// CHECK-LABEL: func.func @padded
// CHECK:         %[[B:.*]] = memref.alloc
// CHECK-NOT:     linalg.fill ins(%{{.*}} : f32) outs(%[[B]] :
// CHECK:         memref.subview %[[B]][0, 0] [1, 8] [1, 1]
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    memref.subview %[[B]][1, 0] [4, 2] [1, 1]
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    memref.subview %[[B]][1, 7] [4, 1] [1, 1]
// CHECK-NEXT:    linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         memref.copy
func.func @padded(%a: memref<4x5xf32>) -> memref<5x8xf32> {
  %z = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%z : f32) outs(%b : memref<5x8xf32>)
  %inner = memref.subview %b[1, 2] [4, 5] [1, 1] : memref<5x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  memref.copy %a, %inner : memref<4x5xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  return %b : memref<5x8xf32>
}

// The form that bufferization gives.
// CHECK-LABEL: func.func @channels_last
// CHECK-NOT:     linalg.map
// CHECK-COUNT-4: linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         memref.copy
func.func @channels_last(%a: memref<3x5x4xf32>) -> memref<5x7x4xf32> {
  %z = arith.constant 1.0 : f32
  %b = memref.alloc() : memref<5x7x4xf32>
  linalg.map outs(%b : memref<5x7x4xf32>)
    (%old: f32) {
      %i = linalg.index 0 : index
      linalg.yield %z : f32
    }
  %inner = memref.subview %b[1, 1, 0] [3, 5, 4] [1, 1, 1] : memref<5x7x4xf32> to memref<3x5x4xf32, strided<[28, 4, 1], offset: 32>>
  memref.copy %a, %inner : memref<3x5x4xf32> to memref<3x5x4xf32, strided<[28, 4, 1], offset: 32>>
  return %b : memref<5x7x4xf32>
}

// What follows may be in the region of another op.
// CHECK-LABEL: func.func @region
// CHECK-COUNT-3: linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         memref.copy
func.func @region(%a: memref<4x5xf32>, %c: memref<5x8xf32>) {
  %z = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%z : f32) outs(%b : memref<5x8xf32>)
  %inner = memref.subview %b[1, 2] [4, 5] [1, 1] : memref<5x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  memref.copy %a, %inner : memref<4x5xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  scf.execute_region {
    memref.copy %b, %c : memref<5x8xf32> to memref<5x8xf32>
    scf.yield
  }
  return
}

// CHECK-LABEL: func.func @region_before
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : memref<5x8xf32>)
func.func @region_before(%a: memref<4x5xf32>, %c: memref<5x8xf32>) {
  %z = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%z : f32) outs(%b : memref<5x8xf32>)
  %inner = memref.subview %b[1, 2] [4, 5] [1, 1] : memref<5x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  scf.execute_region {
    memref.copy %b, %c : memref<5x8xf32> to memref<5x8xf32>
    scf.yield
  }
  memref.copy %a, %inner : memref<4x5xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  return
}

// Something reads the buffer before the copy.
// CHECK-LABEL: func.func @read
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : memref<5x8xf32>)
func.func @read(%a: memref<4x5xf32>, %c: memref<5x8xf32>) -> memref<5x8xf32> {
  %z = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%z : f32) outs(%b : memref<5x8xf32>)
  %inner = memref.subview %b[1, 2] [4, 5] [1, 1] : memref<5x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  memref.copy %b, %c : memref<5x8xf32> to memref<5x8xf32>
  memref.copy %a, %inner : memref<4x5xf32> to memref<4x5xf32, strided<[8, 1], offset: 10>>
  return %b : memref<5x8xf32>
}

// Every second element is copied.
// CHECK-LABEL: func.func @steps
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : memref<5x8xf32>)
func.func @steps(%a: memref<5x4xf32>) -> memref<5x8xf32> {
  %z = arith.constant 0.0 : f32
  %b = memref.alloc() : memref<5x8xf32>
  linalg.fill ins(%z : f32) outs(%b : memref<5x8xf32>)
  %inner = memref.subview %b[0, 0] [5, 4] [1, 2] : memref<5x8xf32> to memref<5x4xf32, strided<[8, 2]>>
  memref.copy %a, %inner : memref<5x4xf32> to memref<5x4xf32, strided<[8, 2]>>
  return %b : memref<5x8xf32>
}

// What is filled depends on the place.
// CHECK-LABEL: func.func @places
// CHECK:         linalg.map
func.func @places(%a: memref<4xindex>) -> memref<8xindex> {
  %b = memref.alloc() : memref<8xindex>
  linalg.map outs(%b : memref<8xindex>)
    (%old: index) {
      %i = linalg.index 0 : index
      linalg.yield %i : index
    }
  %inner = memref.subview %b[1] [4] [1] : memref<8xindex> to memref<4xindex, strided<[1], offset: 1>>
  memref.copy %a, %inner : memref<4xindex> to memref<4xindex, strided<[1], offset: 1>>
  return %b : memref<8xindex>
}
