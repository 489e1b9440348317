// RUN: morello-opt %s --morello-check-known --allow-unregistered-dialect --verify-diagnostics

func.func @f() {
  // expected-error @below {{'foo.bar' op cannot be lowered to LLVM: nothing here implements this op of the 'foo' dialect}}
  "foo.bar"() : () -> ()
  "foo.bar"() : () -> ()
  return
}

// expected-error @below {{'func.func' op tensor<4611686018427387904x4xf32> has more elements than any memory}}
func.func @g(%x: tensor<4611686018427387904x4xf32>) {
  return
}
