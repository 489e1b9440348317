// RUN: not morello-opt %s --split-input-file --morello-legalize-tosa 2>&1 | FileCheck %s

// CHECK: legalize_tosa_reject.mlir:[[@LINE+2]]:8: error: failed to legalize operation 'tosa.custom'
func.func @unknown(%a: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = tosa.custom %a {operator_name = "mine", domain_name = "x", implementation_attrs = ""} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// -----

tosa.variable @state = dense<0.0> : tensor<4xf32>

// CHECK: legalize_tosa_reject.mlir:[[@LINE+2]]:8: error: failed to legalize operation 'tosa.variable_read'
func.func @variable() -> tensor<4xf32> {
  %0 = tosa.variable_read @state : tensor<4xf32>
  return %0 : tensor<4xf32>
}
