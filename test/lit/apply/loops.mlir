// Tiles are loops over the full tiles with the remainder after them; one trip is no loop; tiles of one dim with nothing in
// between become one loop. Moves into caches emit nothing.
// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s

// CHECK-LABEL: func.func @remainder
// CHECK-NOT:     memref.alloc
// CHECK:         scf.for %[[M:.*]] = %c0 to %c8 step %c4 {
// CHECK:           memref.subview %{{.*}}[0, %[[M]], 0] [1, 4, 5] [1, 1, 1] : memref<1x10x5xf32, strided<[50, 5, 1], offset: ?>> to memref<1x4x5xf32, strided<[50, 5, 1], offset: ?>>
// CHECK:           call @morello_scalar_4x5x3_
// CHECK:         }
// CHECK:         memref.subview %{{.*}}[0, 8, 0] [1, 2, 5] [1, 1, 1]
// CHECK:         call @morello_scalar_2x5x3_
// CHECK-NOT:   morello.spec
func.func @remainder(%a: memref<1x10x5xf32>, %b: memref<1x5x3xf32>, %c: memref<1x10x3xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 10, 5, 3>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["move lhs to L2", "move rhs to L2", "move out to L2",
                "tile m by 4:", "  kernel scalar",
                "rest:", "  kernel scalar"]
  } : (memref<1x10x5xf32>, memref<1x5x3xf32>, memref<1x10x3xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @merged
// CHECK:         scf.for %{{.*}} = %c0 to %c12 step %c2 {
// CHECK-NOT:       scf.for
// CHECK:           call @morello_scalar_2x5x3_
// CHECK:         }
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @merged(%a: memref<1x12x5xf32>, %b: memref<1x5x3xf32>, %c: memref<1x12x3xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 12, 5, 3>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["tile m by 8:", "  move lhs to L2", "  move rhs to L2", "  move out to L2",
                "  tile m by 2:", "    kernel scalar",
                "rest:", "  move lhs to L2", "  move rhs to L2", "  move out to L2",
                "  tile m by 2:", "    kernel scalar"]
  } : (memref<1x12x5xf32>, memref<1x5x3xf32>, memref<1x12x3xf32>) -> ()
  return
}

// Batches are a loop like any other; a broadcast operand has batch stride 0.
// CHECK-LABEL: func.func @batches
// CHECK:         scf.for %[[B:.*]] = %c0 to %c3 step %c1 {
// CHECK:           memref.subview %{{.*}}[%[[B]], 0, 0] [1, 4, 5] [1, 1, 1] : memref<3x4x5xf32, strided<[0, 5, 1], offset: ?>> to memref<1x4x5xf32, strided<[0, 5, 1], offset: ?>>
func.func @batches(%a: memref<3x4x5xf32, strided<[0, 5, 1]>>, %b: memref<3x5x3xf32>, %c: memref<3x4x3xf32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 3, 4, 5, 3>,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"], serial,
    schedule = ["tile b by 1:", "  move lhs to L2", "  move rhs to L2", "  move out to L2", "  kernel scalar"]
  } : (memref<3x4x5xf32, strided<[0, 5, 1]>>, memref<3x5x3xf32>, memref<3x4x3xf32>) -> ()
  return
}
