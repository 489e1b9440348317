// A native pass that aborts the process becomes a diagnostic that names it.
// RUN: not morello-opt %s --canonicalize --finalize-memref-to-llvm 2>&1 | FileCheck %s
// RUN: not morello-opt %s --pass-pipeline='builtin.module(func.func(cse),finalize-memref-to-llvm)' 2>&1 | FileCheck %s

// CHECK: crash.mlir:0:0: error: pass 'finalize-memref-to-llvm' crashed (SIGABRT)
func.func @f(%m: memref<4xi1>, %i: index) -> i1 {
  %x = memref.load %m[%i] : memref<4xi1>
  return %x : i1
}
