// RUN: morello-opt %s --morello-strip-attributes --allow-unregistered-dialect | FileCheck %s
// RUN: morello-opt %s --morello-strip-attributes=keep=llvm --allow-unregistered-dialect | FileCheck %s --check-prefix=LLVM

// CHECK-NOT: {{jax|torch|dlti|triple}}
// CHECK: module {
// CHECK: func.func @f(%{{.*}}: memref<4xf32> {llvm.noalias, morello.unaliased}) attributes {morello.keep, passthrough = ["noinline"]}
// CHECK: arith.constant {tag}
// LLVM: func.func @f(%{{.*}}: memref<4xf32> {llvm.noalias}) attributes {passthrough = ["noinline"]}
module attributes {jax.uses_shape_polymorphism = false, llvm.target_triple = "none", dlti.dl_spec = #dlti.dl_spec<>} {
  func.func @f(%x: memref<4xf32> {jax.name = "x", llvm.noalias, morello.unaliased})
      attributes {torch.assume, morello.keep, passthrough = ["noinline"]} {
    %c = arith.constant {torch.origin = "here", tag} 0 : i32
    return
  }
}
