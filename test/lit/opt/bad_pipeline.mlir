// Every mistake in a pipeline is named, with its place, and ends with status 1.
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(cse,no-such-pass{a=3}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not morello-opt %s --pass-pipeline='builtin.module(canonicalize{no-such-option=1})' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not morello-opt %s --pass-pipeline='builtin.module(canonicalize{top-down=maybe})' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(cse)' 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not morello-opt %s --pass-pipeline='builtin.module(cse))' 2>&1 | FileCheck %s --check-prefix=CLOSE
// RUN: not morello-opt %s --pass-pipeline='builtin.module(canonicalize{top-down=1)' 2>&1 | FileCheck %s --check-prefix=BRACE
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(cse,convert-func-to-llvm))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// RUN: not morello-opt %s --pass-pipeline='builtin.module(lower-vector-mask)' 2>&1 | FileCheck %s --check-prefix=FUNC
// RUN: not morello-opt %s --pass-pipeline='func.func(cse)' 2>&1 | FileCheck %s --check-prefix=ROOT
// RUN: not morello-opt %s --pass-pipeline='builtin.module(cse,)' 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not morello-opt %s --pass-pipeline='builtin.module(cse canonicalize)' 2>&1 | FileCheck %s --check-prefix=SPACE
// RUN: not morello-opt %s --pass-pipeline='builtin.module(canonicalize(cse))' 2>&1 | FileCheck %s --check-prefix=NEST
// RUN: not morello-opt %s --pass-pipeline='builtin.module(any(morello-search))' 2>&1 | FileCheck %s --check-prefix=ANY
// RUN: not morello-opt %s --pass-pipeline='builtin.module(morello-lift{no-such-option=1})' 2>&1 | FileCheck %s --check-prefix=OURS

// UNKNOWN: <pass-pipeline>:1:30: error: unknown pass 'no-such-pass'
// UNKNOWN-NEXT: builtin.module(func.func(cse,no-such-pass{a=3}))
// UNKNOWN-NEXT: {{^                             \^$}}
// OPTION: <pass-pipeline>:1:16: error: pass 'canonicalize' has no option 'no-such-option'
// VALUE: <pass-pipeline>:1:16: error: pass 'canonicalize': malformed options 'top-down=maybe'
// OPEN: <pass-pipeline>:1:15: error: unbalanced '(' after 'builtin.module'
// CLOSE: <pass-pipeline>:1:20: error: unbalanced ')'
// BRACE: <pass-pipeline>:1:39: error: unbalanced ')' in the options of 'canonicalize'
// ANCHOR: <pass-pipeline>:1:30: error: pass 'convert-func-to-llvm' runs on 'builtin.module', not on 'func.func'
// FUNC: error: pass 'lower-vector-mask' runs on 'func.func', not on 'builtin.module': nest it in 'func.func(...)'
// ROOT: <pass-pipeline>:1:1: error: expected 'builtin.module(...)'
// COMMA: <pass-pipeline>:1:20: error: expected the name of a pass or op, not ')'
// SPACE: <pass-pipeline>:1:20: error: expected ',' after 'cse', not 'c'
// NEST: <pass-pipeline>:1:16: error: 'canonicalize' is not the name of an op to nest passes on
// ANY: <pass-pipeline>:1:16: error: passes of ours cannot be nested in 'any(...)': name the op
// OURS: <pass-pipeline>:1:16: error: pass 'morello-lift' has no option 'no-such-option'
func.func @f() {
  return
}
