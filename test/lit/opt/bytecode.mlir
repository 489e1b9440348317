// RUN: morello-opt %s --emit-bytecode -o %t.mlirbc
// RUN: morello-opt %t.mlirbc | FileCheck %s
// RUN: morello-opt - --mlir-print-debuginfo < %t.mlirbc | FileCheck %s --check-prefix=DEBUG
// RUN: mlir-opt %t.mlirbc | FileCheck %s
// RUN: morello-opt %t.mlirbc --emit-bytecode | morello-opt --cse --emit-bytecode | mlir-opt --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG

// CHECK: func.func @f
// DEBUG: return loc(#[[LOC:.*]])
// DEBUG: #[[LOC]] = loc("{{.*}}bytecode.mlir":[[#@LINE+2]]:3)
func.func @f() {
  return
}
