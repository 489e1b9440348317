// Groups of four neighbours along k: packed together, the last one padded with zeros, and multiplied by one instruction.
// Both inputs are signed: lhs is taken as 128 too large, and what that adds is a row of sums more, taken off at the end.
// RUN: morello-opt %s --morello-apply=target=sapphirerapids | FileCheck %s

// CHECK-LABEL: func.func @quads
// Four rows of rhs are brought together: widened, moved up and put together; the last group has two.
// CHECK:         scf.for
// CHECK-COUNT-4:   vector.load {{.*}} vector<16xi8>
// CHECK-COUNT-3:   arith.shli {{.*}} : vector<16xi32>
// CHECK:           vector.bitcast {{.*}} : vector<16xi32> to vector<64xi8>
// CHECK:           vector.store {{.*}} vector<64xi8>
// CHECK:         arith.shli {{.*}} : vector<16xi32>
// CHECK-NOT:     arith.shli
// CHECK:         call @[[KERNEL:morello_dpbusd_[a-z0-9_]*]]

// CHECK:       func.func private @[[KERNEL]](
// CHECK:         %[[SAME:.*]] = arith.constant dense<-128> : vector<64xi8>
// CHECK:         scf.for {{.*}} -> (vector<16xi32>, vector<16xi32>) {
// CHECK:           %[[Y:.*]] = vector.load {{.*}} vector<64xi8>
// CHECK:           vector.load {{.*}} vector<4xi8>
// CHECK:           vector.bitcast {{.*}} : vector<4xi8> to vector<1xi32>
// CHECK:           %[[ALL:.*]] = vector.broadcast {{.*}} : vector<1xi32> to vector<16xi32>
// CHECK:           %[[BYTES:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<64xi8>
// CHECK:           arith.xori %[[BYTES]], %[[SAME]]
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({{.*}}, %[[Y]])
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({{.*}}, %[[SAME]], %[[Y]])
// The last group of lhs, which is read in place: no more than is there.
// CHECK:         vector.maskedload {{.*}} memref<{{.*}}xi8{{.*}} into vector<4xi8>
// CHECK:         arith.subi {{.*}} : vector<16xi32>
func.func @quads(%a: memref<1x1x38xi8>, %b: memref<1x38x16xi8>, %c: memref<1x1x16xi32>) {
  "morello.spec"(%a, %b, %c) {
    function = "MatmulAccum", dims = array<i64: 1, 1, 38, 16>,
    operands = ["(i8, GL, row_major)", "(i8, GL, row_major)", "(i32, GL, row_major)"], serial,
    schedule = ["move rhs to L2 as [b, n/16, k/4, n%16, k%4]", "move lhs to L2", "move out to L2", "move lhs to L1",
                "move rhs to L1", "move out to L1", "move out to VRF", "kernel dpbusd"]
  } : (memref<1x1x38xi8>, memref<1x38x16xi8>, memref<1x1x16xi32>) -> ()
  return
}
