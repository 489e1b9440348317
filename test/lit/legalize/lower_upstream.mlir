// RUN: morello-opt %s --morello-bufferize --morello-lower-upstream | FileCheck %s --check-prefixes=CHECK,PUBLIC
// RUN: morello-opt %s --morello-bufferize --morello-lower-upstream=embedded=true | FileCheck %s --check-prefixes=CHECK,EMBEDDED
// RUN: morello-opt %s --morello-default=optimize=false | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=IR

// IR: define

// A mixture of dialects ends in one; public functions keep upstream's convention unless they are embedded.
// CHECK-NOT: {{(arith|math|scf|affine|vector|memref|complex|tensor|shape)\.}}
// PUBLIC: llvm.func @f(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64
// EMBEDDED: llvm.func @f(%{{.*}}: !llvm.ptr, %{{.*}}: i32) attributes {llvm.bareptr
func.func @f(%x: memref<4x8xf32>, %n: i32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  affine.for %i = 0 to 4 {
    %v = vector.transfer_read %x[%i, %c0], %pad : memref<4x8xf32>, vector<8xf32>
    %e = math.tanh %v : vector<8xf32>
    %p = math.fpowi %pad, %n : f32, i32
    %b = vector.broadcast %p : f32 to vector<8xf32>
    %s = arith.addf %e, %b : vector<8xf32>
    vector.transfer_write %s, %x[%i, %c0] : vector<8xf32>, memref<4x8xf32>
  }
  scf.forall (%i) in (4) {
    %z = complex.create %pad, %pad : complex<f32>
    %a = complex.abs %z : complex<f32>
    memref.store %a, %x[%i, %c0] : memref<4x8xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c4) {
    %h = arith.truncf %pad : f32 to bf16
    %g = arith.addf %h, %h : bf16
    %w = arith.extf %g : bf16 to f32
    memref.store %w, %x[%i, %c0] : memref<4x8xf32>
    scf.reduce
  }
  return
}
