// RUN: not morello-opt %s --no-such-pass 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not morello-opt %s --morello-lfit 2>&1 | FileCheck %s --check-prefix=NEAR
// RUN: not morello-opt %s --split-input-file=perhaps 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: not morello-opt %s -o 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not morello-opt %s -o a -o b 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not morello-opt %s %s 2>&1 | FileCheck %s --check-prefix=FILES
// RUN: not morello-opt %s --cse --pass-pipeline='builtin.module(cse)' 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not morello-opt %s '--c se' 2>&1 | FileCheck %s --check-prefix=ODD

// UNKNOWN: morello-opt: error: unknown option or pass '--no-such-pass'
// NEAR: morello-opt: error: unknown option or pass '--morello-lfit'; did you mean '--morello-lift'?
// BOOL: morello-opt: error: option '--split-input-file': 'perhaps' is not true or false
// VALUE: morello-opt: error: option '-o' needs a value
// TWICE: morello-opt: error: option '-o' is given twice
// FILES: morello-opt: error: one input file is expected, not 2
// BOTH: morello-opt: error: '--pass-pipeline' cannot be combined with flags of single passes (--cse)
// ODD: morello-opt: error: unknown option '--c se'
func.func @f() {
  return
}
