// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(scf.for(cse)))' 2>&1 | FileCheck %s
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(scf.for(cse)))' 2>/dev/null | count 0

func.func @f(%n: index) {
  // CHECK: failing_pass.mlir:[[#@LINE+1]]:3: error: 'scf.for' op trying to schedule a pass on an operation not marked as 'IsolatedFromAbove'
  scf.for %i = %n to %n step %n {
    %c = arith.constant 1 : i32
  }
  return
}
