// Our passes and upstream's in one pipeline: printed, timed, and nested alike.
// RUN: morello-opt %s --pass-pipeline='builtin.module(cse,morello-strip-attributes,func.func(canonicalize))' --mlir-print-ir-after-all --mlir-timing 2>&1 | FileCheck %s
// RUN: morello-opt %s --cse --morello-strip-attributes --canonicalize | FileCheck %s --check-prefix=OUT

// CHECK: IR Dump After CSE (cse)
// CHECK: IR Dump After StripAttributes (morello-strip-attributes)
// CHECK-NEXT: module {
// CHECK: IR Dump After Canonicalizer (canonicalize)
// CHECK-NEXT: func.func @f
// CHECK: cse
// CHECK-NEXT: morello-strip-attributes
// CHECK-NEXT: 'func.func' Pipeline
// CHECK-NEXT: canonicalize
// OUT-NOT: no.such
module attributes {no.such = 1} {
  func.func @f() {
    return
  }
}
