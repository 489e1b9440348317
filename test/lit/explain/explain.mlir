// What is chosen for a module: trees with cycles, shares and bytes, and the whole; the same as a page.
// RUN: morello explain %s --target avx2 --threads 1 | FileCheck %s
// RUN: morello explain %s --target avx2 --threads 1 --shares | FileCheck %s --check-prefix=SHARES
// RUN: morello explain %s --target avx2 --threads 1 --html - --clock 3 | FileCheck %s --check-prefix=HTML
// RUN: not morello explain %s --target avx2 --html %t/nowhere/page.html --clock 3 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// RUN: not morello explain %s --target avx2 --clock 3 2>&1 | FileCheck %s --check-prefix=CLOCK

// CHECK: Matmul([1, 16, 24, 32], {{.*}}then "y = add(x0, x1)"
// CHECK-NEXT: target avx2: {{[0-9,]+}} cycles predicted, {{[0-9.]+}}% of the peak
// CHECK-NEXT: traffic: GL to L2 {{[0-9.]+}} kB
// CHECK: // runs cycles share own moved
// CHECK-NEXT: to_accum // 1 {{[0-9,]+}} 100.0% {{.*}}m=16 k=24 n=32
// CHECK-NEXT: // then y = add(x0, x1) // 1
// CHECK: move rhs to L2 {{.*}}// 1 {{.*}}% {{.*}}GL>L2 {{[0-9.]+}} kB
// CHECK: kernel broadcast_fma //
// CHECK: Softmax([16, 32 scan],
// CHECK: pass m {{.*}}cycles of instructions
// CHECK: {{[0-9,]+}} cycles predicted in all
// CHECK-NEXT: traffic: GL to L2
// CHECK-NEXT: % 1 x
// CHECK: left to upstream: nothing

// SHARES-NOT: kernel
// SHARES: cycles predicted in all
// SHARES: left to upstream: nothing

// HTML: <!DOCTYPE html>
// HTML: <h1>{{.*}}explain.mlir</h1>
// HTML: <svg
// HTML: kernel broadcast_fma
// HTML: </html>

// UNWRITABLE: page.html:0:0: error: cannot write output file: No such file or directory
// CLOCK: morello: error: --clock is of a page: give --html too
func.func @f(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>, %c: tensor<32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %m = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x32xf32>) outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%m, %c : tensor<16x32xf32>, tensor<32xf32>) outs(%e : tensor<16x32xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<16x32xf32>
  %r = linalg.softmax dimension(1) ins(%t : tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
