// Flags of single passes run in the order given, with one dash or two, and are nested where they want to be.
// RUN: morello-opt %s --convert-linalg-to-loops -canonicalize="top-down=1 max-iterations=3" --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: morello-opt %s --cse --lower-vector-mask --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=NEST
// RUN: morello-opt %s --canonicalize= | FileCheck %s --check-prefix=PLAIN

// ORDER: Pass Manager with 2 passes:
// ORDER-NEXT: builtin.module(convert-linalg-to-loops,canonicalize{top-down=1 max-iterations=3})
// ORDER: scf.for
// NEST: builtin.module(cse,func.func(lower-vector-mask))
// PLAIN: linalg.fill
func.func @fill(%m: memref<4xf32>, %x: f32) {
  linalg.fill ins(%x : f32) outs(%m : memref<4xf32>)
  return
}
