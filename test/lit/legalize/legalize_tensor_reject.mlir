// RUN: morello-opt %s --morello-legalize-tensor --verify-diagnostics

func.func @dynamic_tile(%x: tensor<?xf32>, %e: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  // expected-error @below {{with an inner tile of dynamic size is not supported}}
  %r = linalg.pack %x inner_dims_pos = [0] inner_tiles = [%n] into %e : tensor<?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
