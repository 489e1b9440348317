// RUN: morello-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: morello-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG
// RUN: morello-opt %s --mlir-print-local-scope --mlir-print-debuginfo | FileCheck %s --check-prefix=LOCAL
// RUN: morello-opt %s --cse --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: morello-opt %s --cse --mlir-timing -o %t.out 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: FileCheck %s --check-prefix=OUT < %t.out
// RUN: not morello-opt %s --verify-each=false --no-such-pass
// RUN: morello-opt %s --verify-each=false --mlir-disable-threading --in-process --cse | FileCheck %s --check-prefix=OUT

// GENERIC: "func.func"() <{
// DEBUG: func.func @f
// DEBUG: return loc(#[[LOC:.*]])
// DEBUG: #[[LOC]] = loc("{{.*}}printing.mlir":[[#@LINE+11]]:3)
// LOCAL: return loc("{{.*}}printing.mlir":[[#@LINE+10]]:3)
// AFTER: // -----// IR Dump After CSE (cse) //----- //
// AFTER: func.func @f
// TIME: Execution time report
// TIME: Parser
// TIME: cse
// TIME: Output
// TIME: Total
// OUT: func.func @f
func.func @f() {
  return
}
