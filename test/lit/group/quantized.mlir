// Zero points are taken off afterwards: the product of the bytes as they are is what there are kernels for.
// RUN: morello-opt %s --morello-group | FileCheck %s

// CHECK-LABEL: func.func @both
// CHECK: %[[A:.*]] = linalg.generic {{.*}}["parallel", "reduction"]{{.*}} ins(%arg0 : tensor<6x19xi8>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<19x10xi8>)
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}}) outs(%{{.*}} : tensor<6x10xi32>) attrs = {morello.group = 0
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]], %arg2 : tensor<6x10xi32>, tensor<6x10xi32>) {{.*}}morello.group = 0
// CHECK-DAG: %[[ZA:.*]] = tensor.from_elements %arg3 : tensor<i32>
// CHECK-DAG: %[[ZB:.*]] = tensor.from_elements %arg4 : tensor<i32>
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[A]], %[[B]], %[[ZB]], %[[ZA]], %{{.*}} : tensor<6x10xi32>, tensor<6xi32>, tensor<10xi32>, tensor<i32>, tensor<i32>, tensor<i32>) {{.*}}morello.group = 0
// CHECK-NOT: quantized
func.func @both(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>, %c: tensor<6x10xi32>, %za: i32, %zb: i32) -> tensor<6x10xi32> {
  %r = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<6x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<6x10xi32>) -> tensor<6x10xi32>
  return %r : tensor<6x10xi32>
}

// A zero point of zero takes nothing off.
// CHECK-LABEL: func.func @none
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}}) outs(%arg2 : tensor<3x6x10xi32>) attrs = {morello.group
// CHECK-NEXT: ^bb0
// CHECK: return %[[P]]
func.func @none(%a: tensor<3x6x19xi8>, %b: tensor<3x19x10xi8>, %c: tensor<3x6x10xi32>) -> tensor<3x6x10xi32> {
  %z = arith.constant 0 : i32
  %r = linalg.quantized_batch_matmul ins(%a, %b, %z, %z : tensor<3x6x19xi8>, tensor<3x19x10xi8>, i32, i32) outs(%c : tensor<3x6x10xi32>) -> tensor<3x6x10xi32>
  return %r : tensor<3x6x10xi32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.quantized_matmul
func.func @dynamic(%a: tensor<?x19xi8>, %b: tensor<19x10xi8>, %c: tensor<?x10xi32>, %z: i32) -> tensor<?x10xi32> {
  %r = linalg.quantized_matmul ins(%a, %b, %z, %z : tensor<?x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<?x10xi32>) -> tensor<?x10xi32>
  return %r : tensor<?x10xi32>
}

// What an op has subtracted from widened bytes is a zero point too; of a product in i64 only the lower half is used.
// CHECK-LABEL: func.func @differences
// CHECK-NOT: xi64>
// CHECK: %[[A:.*]] = linalg.generic {{.*}}["parallel", "reduction"]{{.*}} ins(%arg0 : tensor<6x19xi8>)
// CHECK: arith.extui
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<19x10xi8>)
// CHECK: arith.extsi
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<6x19xi8>, tensor<19x10xi8>) outs(%{{.*}} : tensor<6x10xi32>) attrs = {morello.group
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[A]], %[[B]] : tensor<6x10xi32>, tensor<6xi32>, tensor<10xi32>)
// CHECK-NOT: linalg.generic
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @differences(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>) -> tensor<6x10xi32> {
  %za = arith.constant 11 : i32
  %zb = arith.constant -3 : i32
  %z = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<6x19xi32>
  %e1 = tensor.empty() : tensor<19x10xi32>
  %e2 = tensor.empty() : tensor<6x10xi64>
  %e3 = tensor.empty() : tensor<6x10xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<6x19xi8>) outs(%e0 : tensor<6x19xi32>) {
  ^bb0(%x: i8, %o: i32):
    %w = arith.extui %x : i8 to i32
    linalg.yield %w : i32
  } -> tensor<6x19xi32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<19x10xi8>) outs(%e1 : tensor<19x10xi32>) {
  ^bb0(%x: i8, %o: i32):
    %w = arith.extsi %x : i8 to i32
    linalg.yield %w : i32
  } -> tensor<19x10xi32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<6x19xi32>) outs(%e0 : tensor<6x19xi32>) {
  ^bb0(%x: i32, %o: i32):
    %w = arith.subi %x, %za : i32
    linalg.yield %w : i32
  } -> tensor<6x19xi32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<19x10xi32>) outs(%e1 : tensor<19x10xi32>) {
  ^bb0(%x: i32, %o: i32):
    %w = arith.subi %x, %zb : i32
    linalg.yield %w : i32
  } -> tensor<19x10xi32>
  %i = linalg.fill ins(%z : i64) outs(%e2 : tensor<6x10xi64>) -> tensor<6x10xi64>
  %4 = linalg.matmul ins(%2, %3 : tensor<6x19xi32>, tensor<19x10xi32>) outs(%i : tensor<6x10xi64>) -> tensor<6x10xi64>
  %5 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<6x10xi64>) outs(%e3 : tensor<6x10xi32>) {
  ^bb0(%x: i64, %o: i32):
    %w = arith.trunci %x : i64 to i32
    linalg.yield %w : i32
  } -> tensor<6x10xi32>
  return %5 : tensor<6x10xi32>
}

// Where all of an i64 is used it stays.
// CHECK-LABEL: func.func @all_bits
// CHECK: arith.subi
// CHECK: tensor<6x10xi64>
func.func @all_bits(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>) -> tensor<6x10xi64> {
  %za = arith.constant 11 : i32
  %z = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<6x19xi32>
  %e2 = tensor.empty() : tensor<6x10xi64>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<6x19xi8>) outs(%e0 : tensor<6x19xi32>) {
  ^bb0(%x: i8, %o: i32):
    %w = arith.extui %x : i8 to i32
    linalg.yield %w : i32
  } -> tensor<6x19xi32>
  %e1 = tensor.empty() : tensor<19x10xi32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<19x10xi8>) outs(%e1 : tensor<19x10xi32>) {
  ^bb0(%x: i8, %o: i32):
    %w = arith.extsi %x : i8 to i32
    linalg.yield %w : i32
  } -> tensor<19x10xi32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<6x19xi32>) outs(%e0 : tensor<6x19xi32>) {
  ^bb0(%x: i32, %o: i32):
    %w = arith.subi %x, %za : i32
    linalg.yield %w : i32
  } -> tensor<6x19xi32>
  %i = linalg.fill ins(%z : i64) outs(%e2 : tensor<6x10xi64>) -> tensor<6x10xi64>
  %4 = linalg.matmul ins(%2, %1 : tensor<6x19xi32>, tensor<19x10xi32>) outs(%i : tensor<6x10xi64>) -> tensor<6x10xi64>
  return %4 : tensor<6x10xi64>
}

// Signed bytes that are unsigned ones less 128 are read as what they were made of, padding included: of bytes of which
// one side alone has a sign kernels correct nothing. The zero point is 128 more.
// CHECK-LABEL: func.func @unsigned_image
// CHECK: %[[AROUND:.*]] = arith.constant 5 : i8
// CHECK-NEXT: %[[P:.*]] = tensor.pad %arg0
// CHECK: tensor.yield %[[AROUND]]
// CHECK-NOT: tensor.pad
// CHECK: %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg1 : {{.*}} attrs = {morello.group
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: arith.muli %{{.*}}, %[[FIVE]]
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @unsigned_image(%a: tensor<1x8x5x5xi8>, %b: tensor<6x8x3x3xi8>, %c: tensor<1x6x5x5xi32>) -> tensor<1x6x5x5xi32> {
  %offset = arith.constant -128 : i8
  %around = arith.constant -123 : i8
  %za = arith.constant -123 : i32
  %zb = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x8x5x5xi8>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a : tensor<1x8x5x5xi8>) outs(%e : tensor<1x8x5x5xi8>) {
  ^bb0(%x: i8, %o: i8):
    %w = arith.addi %x, %offset : i8
    linalg.yield %w : i8
  } -> tensor<1x8x5x5xi8>
  %1 = tensor.pad %0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %around : i8
  } : tensor<1x8x5x5xi8> to tensor<1x8x7x7xi8>
  %r = linalg.conv_2d_nchw_fchw_q ins(%1, %b, %za, %zb : tensor<1x8x7x7xi8>, tensor<6x8x3x3xi8>, i32, i32) outs(%c : tensor<1x6x5x5xi32>) -> tensor<1x6x5x5xi32>
  return %r : tensor<1x6x5x5xi32>
}

// One side is enough.
// CHECK-LABEL: func.func @both_unsigned
// CHECK-NOT: arith.xori
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<19x10xi8>)
// CHECK: arith.addi
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[B]] : tensor<6x19xi8>, tensor<19x10xi8>) {{.*}} attrs = {morello.group
// CHECK: arith.extui
// CHECK: arith.extsi
func.func @both_unsigned(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>, %c: tensor<6x10xi32>, %za: i32, %zb: i32) -> tensor<6x10xi32> {
  %offset = arith.constant -128 : i8
  %e0 = tensor.empty() : tensor<6x19xi8>
  %e1 = tensor.empty() : tensor<19x10xi8>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<6x19xi8>) outs(%e0 : tensor<6x19xi8>) {
  ^bb0(%x: i8, %o: i8):
    %w = arith.xori %x, %offset : i8
    linalg.yield %w : i8
  } -> tensor<6x19xi8>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<19x10xi8>) outs(%e1 : tensor<19x10xi8>) {
  ^bb0(%x: i8, %o: i8):
    %w = arith.addi %x, %offset : i8
    linalg.yield %w : i8
  } -> tensor<19x10xi8>
  %r = linalg.quantized_matmul ins(%0, %1, %za, %zb : tensor<6x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<6x10xi32>) -> tensor<6x10xi32>
  return %r : tensor<6x10xi32>
}

// Less another number they are other bytes. Without a zero point that is taken off already, the sums of an input that
// is no constant would cost more than the correction.
// CHECK-LABEL: func.func @no_offset
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<6x19xi8>)
// CHECK: arith.addi
// CHECK-NOT: arith.extui
// CHECK: linalg.generic {{.*}} ins(%[[A]], %arg1 : tensor<6x19xi8>, tensor<19x10xi8>) {{.*}} attrs = {morello.group
// CHECK-NOT: arith.extui
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1 : tensor<6x19xi8>, tensor<19x10xi8>) {{.*}} attrs = {morello.group
// CHECK-NOT: arith.extui
func.func @no_offset(%a: tensor<6x19xi8>, %b: tensor<19x10xi8>, %c: tensor<6x10xi32>, %za: i32) -> (tensor<6x10xi32>, tensor<6x10xi32>) {
  %other = arith.constant -127 : i8
  %offset = arith.constant -128 : i8
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<6x19xi8>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<6x19xi8>) outs(%e : tensor<6x19xi8>) {
  ^bb0(%x: i8, %o: i8):
    %w = arith.addi %x, %other : i8
    linalg.yield %w : i8
  } -> tensor<6x19xi8>
  %r = linalg.quantized_matmul ins(%0, %b, %za, %z : tensor<6x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<6x10xi32>) -> tensor<6x10xi32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<6x19xi8>) outs(%e : tensor<6x19xi8>) {
  ^bb0(%x: i8, %o: i8):
    %w = arith.addi %x, %offset : i8
    linalg.yield %w : i8
  } -> tensor<6x19xi8>
  %s = linalg.quantized_matmul ins(%1, %b, %z, %z : tensor<6x19xi8>, tensor<19x10xi8>, i32, i32) outs(%c : tensor<6x10xi32>) -> tensor<6x10xi32>
  return %r, %s : tensor<6x10xi32>, tensor<6x10xi32>
}
