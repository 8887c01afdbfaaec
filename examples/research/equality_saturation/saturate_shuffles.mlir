// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p saturate-shuffles,fold-constants,dce | filecheck %s

// Two layers read what is transposed, so that the transposition cannot simply move behind the one that reads it.
// CHECK-LABEL: func.func @two_readers(
// CHECK-SAME: [[X:%.*]]: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
// CHECK-NEXT: [[V0:%.*]] = trt.constant {value = dense<{{\[\[}}[1.000000e+00], [2.000000e+00], [3.000000e+00]]]> : tensor<1x3x1xf32>} : tensor<1x3x1xf32>
// CHECK-NEXT: [[V1:%.*]] = trt.elementwise prod [[X]], [[V0]] : (tensor<2x3x4xf32>, tensor<1x3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: [[V2:%.*]] = trt.activation sigmoid [[V1]] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[V1]], [[V2]] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<2x3x4xf32>
func.func @two_readers(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %c = trt.constant {value = dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>} : tensor<1x1x3xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %a = trt.elementwise prod %t, %c : (tensor<2x4x3xf32>, tensor<1x1x3xf32>) -> tensor<2x4x3xf32>
  %s = trt.activation sigmoid %a : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %p = trt.elementwise prod %a, %s : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %y = trt.shuffle %p {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  func.return %y : tensor<2x3x4xf32>
}

// Three scales and shifts are one of each, and of two transpositions one is left.
// CHECK-LABEL: func.func @scales(
// CHECK-SAME: [[X:%.*]]: tensor<2x3x4xf32>, [[Z:%.*]]: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
// CHECK-NEXT: [[V0:%.*]] = trt.elementwise sum [[X]], [[Z]] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: [[V1:%.*]] = trt.shuffle [[V0]] {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: [[V2:%.*]] = trt.constant {value = dense<6.000000e+00> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[V1]], [[V2]] : (tensor<2x4x3xf32>, tensor<1x1x1xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<2x4x3xf32>
func.func @scales(%x: tensor<2x3x4xf32>, %z: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  %c = trt.constant {value = dense<2.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %d = trt.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %u = trt.shuffle %z {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %a = trt.elementwise prod %t, %c : (tensor<2x4x3xf32>, tensor<1x1x1xf32>) -> tensor<2x4x3xf32>
  %b = trt.elementwise prod %u, %c : (tensor<2x4x3xf32>, tensor<1x1x1xf32>) -> tensor<2x4x3xf32>
  %s = trt.elementwise sum %a, %b : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %y = trt.elementwise prod %s, %d : (tensor<2x4x3xf32>, tensor<1x1x1xf32>) -> tensor<2x4x3xf32>
  func.return %y : tensor<2x4x3xf32>
}

// One transposition is needed in any form.
// CHECK-LABEL: func.func @cheapest_already(
// CHECK-SAME: [[X:%.*]]: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
// CHECK-NEXT: [[T:%.*]] = trt.shuffle [[X]] {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.activation relu [[T]] : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<2x4x3xf32>
func.func @cheapest_already(%x: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %y = trt.activation relu %t : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  func.return %y : tensor<2x4x3xf32>
}
