// RUN: not morello-run %s --entry unknown_op 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not morello-run %s --entry no_symbol 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not morello-run %s 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not morello-run %s --entry nothing 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not morello-run %s --args none.npz --entry fine 2>&1 | FileCheck %s --check-prefix=ARGS
// RUN: not morello-run %s --entry fine --expect %s 2>&1 | FileCheck %s --check-prefix=EXPECT
// RUN: morello-run %s --entry fine

// OP: bad_program.mlir:[[#]]:3: error: 'foo.bar' op cannot be lowered to LLVM
// SYMBOL: error: the program calls 'nowhere'
// ENTRY: error: several functions could be the entry (@unknown_op, @no_symbol, @fine)
// NOTHING: error: no function @nothing to enter
// ARGS: error: none.npz: no such file
// EXPECT: bad_program.mlir: not an npz archive
func.func @unknown_op() {
  "foo.bar"() : () -> ()
  return
}
func.func private @nowhere()
func.func @no_symbol() {
  call @nowhere() : () -> ()
  return
}
func.func @fine(%x: f32) -> f32 {
  return %x : f32
}
