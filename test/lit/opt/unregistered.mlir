// RUN: morello-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: not morello-opt %s

// CHECK: "no.such"() : () -> ()
"no.such"() : () -> ()
