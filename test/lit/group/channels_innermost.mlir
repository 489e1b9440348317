// Constant filters of bytes are read as a copy in which channels are inside of taps: groups along k are channels.
// RUN: morello-opt %s --morello-group --split-input-file | FileCheck %s

// CHECK-DAG: #[[FROM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
// CHECK-DAG: #[[FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d6, d4)>
// CHECK-LABEL: func.func @bytes
// CHECK: %[[COPY:.*]] = linalg.generic {indexing_maps = [#[[FROM]], {{.*}} ins(%arg1 : tensor<6x5x3x2xi8>) outs(%{{.*}} : tensor<6x3x2x5xi8>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[FILTER]], #{{.*}} ins(%arg0, %[[COPY]] : tensor<1x5x9x8xi8>, tensor<6x3x2x5xi8>) {{.*}}morello.group
func.func @bytes(%x: tensor<1x5x9x8xi8>, %w: tensor<6x5x3x2xi8> {morello.constant}, %y: tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32> {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x9x8xi8>, tensor<6x5x3x2xi8>) outs(%y : tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32>
  return %r : tensor<1x6x7x7xi32>
}

// -----

// Filters that may change, floats, what has no taps, or too few channels, are read as they lie.
// CHECK-LABEL: func.func @changing
// CHECK-NEXT: linalg.conv_2d_nchw_fchw {morello.group
func.func @changing(%x: tensor<1x5x9x8xi8>, %w: tensor<6x5x3x2xi8>, %y: tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32> {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x9x8xi8>, tensor<6x5x3x2xi8>) outs(%y : tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32>
  return %r : tensor<1x6x7x7xi32>
}
// CHECK-LABEL: func.func @floats
// CHECK-NOT: linalg.generic
// CHECK: linalg.conv_2d_nchw_fchw
func.func @floats(%x: tensor<1x5x9x8xf32>, %w: tensor<6x5x3x2xf32> {morello.constant}, %y: tensor<1x6x7x7xf32>) -> tensor<1x6x7x7xf32> {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x9x8xf32>, tensor<6x5x3x2xf32>) outs(%y : tensor<1x6x7x7xf32>) -> tensor<1x6x7x7xf32>
  return %r : tensor<1x6x7x7xf32>
}
// CHECK-LABEL: func.func @few_channels
// CHECK-NOT: linalg.generic
// CHECK: linalg.conv_2d_nchw_fchw
func.func @few_channels(%x: tensor<1x3x9x8xi8>, %w: tensor<6x3x3x2xi8> {morello.constant}, %y: tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32> {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x9x8xi8>, tensor<6x3x3x2xi8>) outs(%y : tensor<1x6x7x7xi32>) -> tensor<1x6x7x7xi32>
  return %r : tensor<1x6x7x7xi32>
}
// CHECK-LABEL: func.func @no_taps
// CHECK-NOT: linalg.generic
// CHECK: linalg.conv_2d_nchw_fchw
func.func @no_taps(%x: tensor<1x5x9x8xi8>, %w: tensor<6x5x1x1xi8> {morello.constant}, %y: tensor<1x6x9x8xi32>) -> tensor<1x6x9x8xi32> {
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x9x8xi8>, tensor<6x5x1x1xi8>) outs(%y : tensor<1x6x9x8xi32>) -> tensor<1x6x9x8xi32>
  return %r : tensor<1x6x9x8xi32>
}

// Channels are inside already.
// CHECK-LABEL: func.func @channels_last
// CHECK-NEXT: linalg.conv_2d_nhwc_hwcf {morello.group
func.func @channels_last(%x: tensor<1x9x8x5xi8>, %w: tensor<3x2x5x6xi8> {morello.constant}, %y: tensor<1x7x7x6xi32>) -> tensor<1x7x7x6xi32> {
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x8x5xi8>, tensor<3x2x5x6xi8>) outs(%y : tensor<1x7x7x6xi32>) -> tensor<1x7x7x6xi32>
  return %r : tensor<1x7x7x6xi32>
}
