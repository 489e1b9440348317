// Everything that takes time is counted: calls of goals, what upstream lowers, copies, buffers, and the whole.
// RUN: morello-opt %s --morello-profile | FileCheck %s

// CHECK: module attributes {morello.profile = ["whole", "memory memref.alloc", "goal goal", "upstream linalg.exp", "copy memref.copy", "memory memref.dealloc"]}
// CHECK: memref.global @morello_profile : memref<12xi64>
// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[ALL:.*]] = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
// CHECK: %[[T:.*]] = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
// CHECK-NEXT: memref.alloc
// CHECK-NEXT: %[[ROOM:.*]] = memref.get_global @morello_profile : memref<12xi64>
// CHECK-NEXT: %[[END:.*]] = llvm.call_intrinsic "llvm.readcyclecounter"() : () -> i64
// CHECK-NEXT: %[[TAKEN:.*]] = arith.subi %[[END]], %[[T]]
// CHECK: memref.store
// CHECK: memref.store
// CHECK: call @elsewhere
// CHECK: scf.for
// CHECK: llvm.call_intrinsic
// CHECK-NEXT: call @goal
// CHECK: llvm.call_intrinsic
// CHECK: linalg.exp
// CHECK: memref.copy
// CHECK: memref.dealloc
// CHECK: %[[LAST:.*]] = llvm.call_intrinsic
// CHECK: arith.subi %{{.*}}, %[[ALL]]
// CHECK: memref.store
// CHECK: memref.store
// CHECK-NEXT: return
// What is called is not counted inside, and what is only declared not at all.
// CHECK-LABEL: func.func private @goal
// CHECK-NOT: call_intrinsic
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = memref.alloc() : memref<8xf32>
  func.call @elsewhere() : () -> ()
  scf.for %i = %c0 to %c2 step %c1 {
    func.call @goal(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  linalg.exp ins(%t : memref<8xf32>) outs(%y : memref<8xf32>)
  memref.copy %y, %t : memref<8xf32> to memref<8xf32>
  memref.dealloc %t : memref<8xf32>
  return
}
func.func private @goal(%x: memref<8xf32>, %y: memref<8xf32>) {
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
func.func private @elsewhere()
