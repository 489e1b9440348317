// A failing pass, upstream's or ours: its error with a location, status 1, no output.
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(scf.for(cse)))' 2>&1 | FileCheck %s
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(scf.for(cse)))' 2>/dev/null | count 0
// RUN: not morello-opt %s --cse --morello-select-entry="entry=no_such" 2>&1 | FileCheck %s --check-prefix=OURS
// RUN: not morello-opt %s --morello-select-entry="entry=no_such" --mlir-timing --mlir-print-ir-after-all 2>&1 | FileCheck %s --check-prefix=OURS

// OURS: failing_pass.mlir:{{[0-9]+:[0-9]+}}: error: {{.*}}no_such
func.func @f(%n: index) {
  // CHECK: failing_pass.mlir:[[#@LINE+1]]:3: error: 'scf.for' op trying to schedule a pass on an operation not marked as 'IsolatedFromAbove'
  scf.for %i = %n to %n step %n {
    %c = arith.constant 1 : i32
  }
  return
}
