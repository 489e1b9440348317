// RUN: not morello-opt %s --split-input-file --verify-diagnostics 2>&1 | FileCheck %s
// RUN: echo '// expected-error-re @+1 {{a{{(}}}}' | not morello-opt --verify-diagnostics 2>&1 | FileCheck %s --check-prefix=REGEX

// CHECK: verify_diagnostics_reject.mlir:[[#@LINE+2]]:3: error: unexpected error: 'func.return' op has 0 operands
func.func @unexpected() -> i32 {
  return
}

// -----

// CHECK: verify_diagnostics_reject.mlir:[[#@LINE+1]]:4: error: expected error "nothing is wrong" was not produced
// expected-error @+1 {{nothing is wrong}}
func.func @missing() { return }

// -----

// The severity must agree.
// CHECK: verify_diagnostics_reject.mlir:[[#@LINE+3]]:3: error: unexpected error: 'func.return'
// CHECK: verify_diagnostics_reject.mlir:[[#@LINE+2]]:13: error: expected remark "op has 0 operands" was not produced
func.func @severity() -> i32 {
  return // expected-remark {{op has 0 operands}}
}

// REGEX: <stdin>:1:4: error: malformed regular expression in expected-error-re
