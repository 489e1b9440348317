// RUN: morello-opt %s --morello-apply=target=avx2 | FileCheck %s
// RUN: morello-opt %s --morello-apply="target=avx2 stop-at=8" | FileCheck %s --check-prefix=STOP

// A bias and a relu at the last step along k. The full steps before a remainder are never the last one: their function
// is that of the plain Spec.

// CHECK-LABEL: func.func @rest(
// CHECK: scf.for
// CHECK: call @[[BODY:morello_broadcast_fma_4x32x8_[a-z0-9]+]]({{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i1)
// CHECK: call @[[REST:morello_broadcast_fma_4x6x8_[a-z0-9]+]]({{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i1)

// STOP-LABEL: func.func @rest(
// STOP: "morello.spec"({{.*}}function = "MatmulAccum"
// STOP-NOT: then =
// STOP: "morello.spec4"({{.*}}function = "MatmulAccum"
// STOP-SAME: then = "y = max(add(x0, x1), 0.0:f32)", then_inputs = ["f32", "(f32, [n])"]
func.func @rest(%a: memref<1x4x70xf32>, %b: memref<1x70x8xf32>, %c: memref<1x4x8xf32>, %bias: memref<1x4x8xf32, strided<[0, 0, 1]>>) {
  "morello.spec4"(%a, %b, %c, %bias) {function = "Matmul", dims = array<i64: 1, 4, 70, 8>, serial,
    operands = ["(f32, GL, row_major)", "(f32, GL, row_major)", "(f32, GL, row_major)"],
    then = "y = max(add(x0, x1), 0.0:f32)", then_inputs = ["f32", "(f32, [n])"],
    schedule = ["to_accum", "move lhs to L2", "move rhs to L2", "move out to L2", "move lhs to L1", "move rhs to L1", "move out to L1",
      "split k by 32:", "    move out to VRF", "    kernel broadcast_fma", "rest:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x4x70xf32>, memref<1x70x8xf32>, memref<1x4x8xf32>, memref<1x4x8xf32, strided<[0, 0, 1]>>) -> ()
  return
}

// Where steps divide, only run time knows which is the last. Results of another type than the sums: these have a place of
// their own meanwhile.

// CHECK-LABEL: func.func @divides(
// CHECK: %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x4x8xi32>
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[K]]
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[K]]
// CHECK: call @[[STEP:morello_broadcast_fma_4x4x8_[a-z0-9]+]]({{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i1, i1)
// CHECK: memref.dealloc %[[SUMS]]

// STOP-LABEL: func.func @divides(
// STOP: scf.for
// STOP: scf.if
// STOP: scf.if
// STOP: "morello.spec4"({{.*}}function = "Matmul"
// STOP-SAME: then = "y = cast(mul(cast(x0, f32), x1), i8)", then_inputs = ["i32", "(f32, [m])"]
// STOP: else
// STOP: "morello.spec5"({{.*}}function = "Matmul"
// STOP-SAME: then = "y = cast(mul(cast(add({{x0, x2|x2, x0}}), f32), x1), i8)", then_inputs = ["i32", "(f32, [m])", "(i32, [m, n])"]
// STOP: else
// STOP: "morello.spec"({{.*}}function = "Matmul"
// STOP: "morello.spec"({{.*}}function = "MatmulAccum"
func.func @divides(%a: memref<1x4x8xi8>, %b: memref<1x8x8xi8>, %c: memref<1x4x8xi8>, %scale: memref<1x4x8xf32, strided<[0, 1, 0]>>) {
  "morello.spec4"(%a, %b, %c, %scale) {function = "Matmul", dims = array<i64: 1, 4, 8, 8>, serial,
    operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(i8, GL, row_major)"],
    then = "y = cast(mul(cast(x0, f32), x1), i8)", then_inputs = ["i32", "(f32, [m])"],
    schedule = ["to_accum", "move lhs to L2", "move rhs to L2", "move out to L2", "move lhs to L1", "move rhs to L1", "move out to L1",
      "split k by 4:", "    move out to VRF", "    kernel broadcast_fma"]
  } : (memref<1x4x8xi8>, memref<1x8x8xi8>, memref<1x4x8xi8>, memref<1x4x8xf32, strided<[0, 1, 0]>>) -> ()
  return
}

// The rows share the vector of the bias, loaded once.
// CHECK: func.func private @[[REST]](
// CHECK: scf.if
// CHECK: vector.load {{.*}} : memref<8xf32, {{.*}}, vector<8xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: func.func private @[[BODY]](
// CHECK-NOT: arith.maximumf
// CHECK: func.func private @[[STEP]](
// CHECK: scf.if %arg5 -> (vector
// CHECK: scf.if %arg6 {
// CHECK: arith.fptosi
// CHECK: else
// CHECK-NOT: arith.fptosi
// CHECK: return
