// Parts are separate modules; lines count in the file; good parts are printed although one fails.
// RUN: not morello-opt %s --split-input-file 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERR < %t.err
// RUN: not morello-opt %s --split-input-file --emit-bytecode 2> /dev/null | grep -a -q -e "-----"
// RUN: not morello-opt %s 2>&1 | FileCheck %s --check-prefix=WHOLE

// CHECK: func.func @first
// CHECK: // -----
// CHECK-NOT: @second
// CHECK: func.func @first
// ERR: split_input_file.mlir:[[#@LINE+6]]:10: error: use of undeclared SSA value name
// WHOLE: error:
func.func @first() { return }

// -----
func.func @second() -> i32 {
  return %x : i32
}

// ----- whatever follows on the line
func.func @first() { return }
