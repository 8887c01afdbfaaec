// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p move-mean-before-convolution | filecheck %s

// The convolution is read by the scaling, too: it stays, and its gate comes in front of it.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME: [[X:%.*]]: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
// CHECK-NEXT: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<8x2x1x1xf32>} : tensor<8x2x1x1xf32>
// CHECK-NEXT: [[B:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<8xf32>} : tensor<8xf32>
// CHECK-NEXT: [[C:%.*]] = trt.convolution [[X]], [[W]], [[B]] {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x4x4xf32>, tensor<8x2x1x1xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NEXT: [[V0:%.*]] = trt.reduce avg [[X]] {axes = array<i64: 2, 3>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
// CHECK-NEXT: [[M:%.*]] = trt.convolution [[V0]], [[W]], [[B]] {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x1x1xf32>, tensor<8x2x1x1xf32>, tensor<8xf32>) -> tensor<1x8x1x1xf32>
// CHECK-NEXT: [[G:%.*]] = trt.activation sigmoid [[M]] : (tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[C]], [[G]] : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<1x8x4x4xf32>
func.func @gated(%x: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<8x2x1x1xf32>} : tensor<8x2x1x1xf32>
  %b = trt.constant {value = dense<1.0> : tensor<8xf32>} : tensor<8xf32>
  %c = trt.convolution %x, %w, %b {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x4x4xf32>, tensor<8x2x1x1xf32>, tensor<8xf32>) -> tensor<1x8x4x4xf32>
  %m = trt.reduce avg %c {axes = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
  %g = trt.activation sigmoid %m : (tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
  %y = trt.elementwise prod %c, %g : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return %y : tensor<1x8x4x4xf32>
}

// Elements at the border have fewer neighbours.
// CHECK-LABEL: func.func @windows(
// CHECK-SAME: [[X:%.*]]: tensor<1x2x4x4xf32>) -> tensor<1x8x1x1xf32> {
// CHECK-NEXT: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<8x2x3x3xf32>} : tensor<8x2x3x3xf32>
// CHECK-NEXT: [[C:%.*]] = trt.convolution [[X]], [[W]] {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NEXT: [[M:%.*]] = trt.reduce avg [[C]] {axes = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
// CHECK-NEXT: func.return [[M]] : tensor<1x8x1x1xf32>
func.func @windows(%x: tensor<1x2x4x4xf32>) -> tensor<1x8x1x1xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<8x2x3x3xf32>} : tensor<8x2x3x3xf32>
  %c = trt.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x4x4xf32>
  %m = trt.reduce avg %c {axes = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
  func.return %m : tensor<1x8x1x1xf32>
}
