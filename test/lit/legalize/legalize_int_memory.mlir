// RUN: morello-opt %s --morello-legalize-int-memory | FileCheck %s
// RUN: morello-opt %s --morello-lower-upstream | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: {{memref|unrealized}}.
// LLVM: llvm.func @f

// CHECK-DAG: memref.global "private" constant @mask : memref<4xi8> = dense<[1, 0, 0, 1]>
// CHECK-DAG: memref.global "private" constant @all : memref<4xi8> = dense<1>
// CHECK-DAG: memref.global "private" constant @nibbles : memref<3xi8> = dense<[7, -8, -1]>
memref.global "private" constant @mask : memref<4xi1> = dense<[true, false, false, true]>
memref.global "private" constant @all : memref<4xi1> = dense<true>
memref.global "private" constant @nibbles : memref<3xi4> = dense<[7, -8, -1]>

// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[X:[^:]*]]: memref<?xi8>, %[[I:[^:]*]]: index, %[[B:[^:]*]]: i1) -> memref<?xi8>
func.func @f(%x: memref<?xi1>, %i: index, %b: i1) -> memref<?xi1> {
  %m = memref.get_global @mask : memref<4xi1>
  // CHECK: %[[LOADED:.*]] = memref.load %{{.*}} : memref<4xi8>
  // CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[LOADED]]
  %v = memref.load %m[%i] : memref<4xi1>
  // CHECK: %[[AND:.*]] = arith.andi %[[BIT]], %[[B]]
  %w = arith.andi %v, %b : i1
  // CHECK: %[[BYTE:.*]] = arith.extui %[[AND]] : i1 to i8
  // CHECK: memref.store %[[BYTE]], %[[X]]
  memref.store %w, %x[%i] : memref<?xi1>
  // CHECK: scf.if %[[B]] -> (memref<?xi8>)
  %r = scf.if %b -> (memref<?xi1>) {
    %n = memref.alloc(%i) : memref<?xi1>
    scf.yield %n : memref<?xi1>
  } else {
    scf.yield %x : memref<?xi1>
  }
  return %r : memref<?xi1>
}

// CHECK-LABEL: func.func @nibble
func.func @nibble(%x: memref<3xi4>, %i: index) {
  // CHECK: arith.trunci %{{.*}} : i8 to i4
  %v = memref.load %x[%i] : memref<3xi4>
  // CHECK: arith.extsi %{{.*}} : i4 to i8
  memref.store %v, %x[%i] : memref<3xi4>
  return
}

// CHECK-LABEL: func.func @vectors
func.func @vectors(%x: memref<8xi1>, %y: memref<8xi1>, %i: index) {
  // CHECK: vector.load %{{.*}} : memref<8xi8>, vector<8xi8>
  // CHECK: arith.cmpi ne, %{{.*}} : vector<8xi8>
  %v = vector.load %x[%i] : memref<8xi1>, vector<8xi1>
  // CHECK: arith.extui %{{.*}} : vector<8xi1> to vector<8xi8>
  vector.store %v, %y[%i] : memref<8xi1>, vector<8xi1>
  return
}

// Whole bytes stay as they are.
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: memref<8xi16>
func.func @bytes(%x: memref<8xi16>) {
  return
}
