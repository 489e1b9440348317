// RUN: morello-opt %s --morello-check-known --allow-unregistered-dialect --verify-diagnostics

func.func @f() {
  // expected-error @below {{'foo.bar' op cannot be lowered to LLVM: nothing here implements this op of the 'foo' dialect}}
  "foo.bar"() : () -> ()
  "foo.bar"() : () -> ()
  return
}

// expected-error @below {{'func.func' op tensor<4611686018427387904x4xf32> has more elements than any memory, or reaches beyond it}}
func.func @g(%x: tensor<4611686018427387904x4xf32>) {
  return
}

// expected-error @below {{'func.func' op memref<4x4xf32, strided<[4611686018427387900, 1]>> has more elements than}}
func.func @h(%x: memref<4x4xf32, strided<[4611686018427387900, 1]>>) {
  return
}

// Ok: it may well be one row.
func.func @i(%x: memref<?x4xf32, strided<[4096, 1]>>, %y: memref<4x4xf32, strided<[-4096, ?], offset: ?>>) {
  return
}
