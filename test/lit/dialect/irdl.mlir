// The definition is plain IRDL, which mlir-opt can load as well; it knows no other op.
// RUN: mlir-opt --irdl-file=%S/../../../dialect/morello.irdl.mlir %S/spec_valid.mlir | FileCheck %s
// RUN: morello-opt %s --verify-diagnostics

// CHECK-COUNT-6: "morello.spec"
// expected-error @+1 {{unregistered operation 'morello.no_such'}}
"morello.no_such"() : () -> ()
