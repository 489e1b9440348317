// RUN: morello-opt %s --morello-legalize-tosa | FileCheck %s
// RUN: morello-run %s --entry layer --check | FileCheck %s --check-prefix=CHECKED
// RUN: morello-run %s --entry bytes --check | FileCheck %s --check-prefix=CHECKED

// CHECKED: left 0 to upstream
// CHECKED: check: right

// CHECK-LABEL: func.func @layer
// CHECK: linalg.conv_2d_nhwc_{{fhwc|hwcf}}
// CHECK-NOT: tosa
func.func @layer(%x: tensor<1x6x7x3xf32>, %w: tensor<5x3x3x3xf32>, %b: tensor<5xf32>) -> tensor<30x5xf32> {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = tosa.conv2d %x, %w, %b, %zero, %zero {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x6x7x3xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x5xf32>
  %1 = tosa.clamp %0 {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x6x6x5xf32>) -> tensor<1x6x6x5xf32>
  %start = tosa.const_shape {values = dense<0> : tensor<4xindex>} : () -> !tosa.shape<4>
  %size = tosa.const_shape {values = dense<[1, 5, 6, 5]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %2 = tosa.slice %1, %start, %size : (tensor<1x6x6x5xf32>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x5x6x5xf32>
  %shape = tosa.const_shape {values = dense<[30, 5]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %3 = tosa.reshape %2, %shape : (tensor<1x5x6x5xf32>, !tosa.shape<2>) -> tensor<30x5xf32>
  return %3 : tensor<30x5xf32>
}

// Products of bytes with zero points, rescaled to bytes.
// CHECK-LABEL: func.func @bytes
// CHECK: linalg.quantized_batch_matmul
// CHECK-NOT: tosa
func.func @bytes(%a: tensor<1x14x19xi8>, %b: tensor<1x19x28xi8>) -> tensor<1x14x28xi8> {
  %zero = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %0 = tosa.matmul %a, %b, %zero, %zero : (tensor<1x14x19xi8>, tensor<1x19x28xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x14x28xi32>
  %multiplier = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %shift = "tosa.const"() {values = dense<38> : tensor<1xi8>} : () -> tensor<1xi8>
  %in = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %out = "tosa.const"() {values = dense<-1> : tensor<1xi8>} : () -> tensor<1xi8>
  %1 = tosa.rescale %0, %multiplier, %shift, %in, %out {rounding_mode = SINGLE_ROUND, scale32 = true, per_channel = false, input_unsigned = false, output_unsigned = false}
    : (tensor<1x14x28xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x14x28xi8>
  return %1 : tensor<1x14x28xi8>
}
