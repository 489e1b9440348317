// RUN: morello-opt %s --morello-legalize-int-memory --verify-diagnostics

func.func @masked(%x: memref<8xi1>, %i: index, %m: vector<8xi1>) -> vector<8xi1> {
  // expected-error @below {{on memory of i1 or another odd integer type is not supported}}
  %v = vector.maskedload %x[%i], %m, %m : memref<8xi1>, vector<8xi1>, vector<8xi1> into vector<8xi1>
  return %v : vector<8xi1>
}
