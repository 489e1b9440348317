// RUN: morello-opt %s --morello-check-lowered --verify-diagnostics

llvm.func @lowered(%x: i32) -> i32 {
  %y = llvm.add %x, %x : i32
  llvm.return %y : i32
}
llvm.func @left(%x: i32) -> i32 {
  // A cast is the consequence of the op that needs it.
  %p = builtin.unrealized_conversion_cast %x : i32 to index
  // expected-error @below {{'arith.addi' op cannot be lowered to LLVM: nothing here implements this op of the 'arith' dialect}}
  %q = arith.addi %p, %p : index
  %r = builtin.unrealized_conversion_cast %q : index to i32
  llvm.return %r : i32
}
