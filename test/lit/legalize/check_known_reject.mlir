// RUN: morello-opt %s --morello-check-known --allow-unregistered-dialect --verify-diagnostics

func.func @f() {
  // expected-error @below {{'foo.bar' op cannot be lowered to LLVM: nothing here implements this op of the 'foo' dialect}}
  "foo.bar"() : () -> ()
  "foo.bar"() : () -> ()
  return
}
