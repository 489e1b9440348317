// A softmax as frontends write it is one nest, from fusing to lifting.
// RUN: morello-opt %s --morello-fuse | FileCheck %s
// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-fuse,morello-bufferize)' | FileCheck %s --check-prefix=OUTLINE
// RUN: morello-opt %s --pass-pipeline='builtin.module(morello-fuse,morello-bufferize,morello-lift)' | FileCheck %s --check-prefix=LIFT

// The result is written where it is wanted; what is in between stays in the region.
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<8x16xf32>
// CHECK: scf.execute_region -> tensor<8x16xf32> no_inline {
// CHECK: tensor.empty() : tensor<8xf32>
// CHECK: linalg.generic {{.*}} outs(%[[OUT]]
// CHECK-SAME: morello.nest = {body = "m = max(x0); e = exp(sub(x0, m)); s = sum(e); y = div(e, s)",
// CHECK-SAME: dims = array<i64: 8, 16>, operands = ["f32 {{[0-9]+}}.0 [d0, d1]", "f32 0 [d0, d1]"], scan = array<i64: 1>}
// CHECK: scf.yield
// CHECK-NOT: linalg

// OUTLINE: func private @morello_nest_0(%{{.*}}: memref<8x16xf32{{.*}}>, %[[RESULT:.*]]: memref<8x16xf32>)
// OUTLINE-SAME: morello.nest = {{.*}}operands = ["f32 0 [d0, d1]", "f32 1 [d0, d1]"]
// OUTLINE-SAME: morello.root = "linalg.generic"
// OUTLINE: outs(%[[RESULT]] : memref<8x16xf32>)
// OUTLINE: func @f
// OUTLINE-NOT: linalg
// OUTLINE: call @morello_nest_0

// LIFT: func @f
// LIFT-NOT: linalg
// LIFT: call @morello_softmax_8x16_f32
// LIFT: func private @morello_softmax_8x16_f32(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>)
// LIFT: "morello.nest{{.*}}function = "Softmax"
// LIFT-NOT: memref.alloc
#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#kept = affine_map<(i, j) -> (i, 0)>
func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x1xf32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%f0 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.maximumf %a, %o : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %mk = tensor.expand_shape %m [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %d = linalg.generic {indexing_maps = [#full, #kept, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mk : tensor<8x16xf32>, tensor<8x1xf32>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.subf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<8x16xf32>
  %e = linalg.exp ins(%d : tensor<8x16xf32>) outs(%e1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x1xf32>) -> tensor<8x1xf32>
  %s = linalg.generic {indexing_maps = [#full, #kept], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x16xf32>) outs(%f1 : tensor<8x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.addf %a, %o : f32
    linalg.yield %y : f32
  } -> tensor<8x1xf32>
  %r = linalg.generic {indexing_maps = [#full, #kept, #full], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<8x16xf32>, tensor<8x1xf32>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
