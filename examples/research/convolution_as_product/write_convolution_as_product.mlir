// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p write-convolution-as-product | filecheck %s

// CHECK-LABEL: func.func @pointwise(
// CHECK-SAME: [[X:%.*]]: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
// CHECK-NEXT: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<8x2x1x1xf32>} : tensor<8x2x1x1xf32>
// CHECK-NEXT: [[V0:%.*]] = trt.shuffle [[X]] {reshape_dims = #trt.dims<["1", "2", "16"]>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x16xf32>
// CHECK-NEXT: [[V1:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<1x8x2xf32>} : tensor<1x8x2xf32>
// CHECK-NEXT: [[V2:%.*]] = trt.matrix_multiply [[V1]], [[V0]] : (tensor<1x8x2xf32>, tensor<1x2x16xf32>) -> tensor<1x8x16xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle [[V2]] {reshape_dims = #trt.dims<["1", "8", "4", "4"]>} : (tensor<1x8x16xf32>) -> tensor<1x8x4x4xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<1x8x4x4xf32>
func.func @pointwise(%x: tensor<1x2x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<8x2x1x1xf32>} : tensor<8x2x1x1xf32>
  %y = trt.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x4x4xf32>, tensor<8x2x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return %y : tensor<1x8x4x4xf32>
}

// A window of three columns.
// CHECK-LABEL: func.func @windows(
// CHECK-SAME: [[X:%.*]]: tensor<1x2x4x4xf32>) -> tensor<1x8x4x2xf32> {
// CHECK-NEXT: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<8x2x1x3xf32>} : tensor<8x2x1x3xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.convolution [[X]], [[W]] {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x4x4xf32>, tensor<8x2x1x3xf32>) -> tensor<1x8x4x2xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<1x8x4x2xf32>
func.func @windows(%x: tensor<1x2x4x4xf32>) -> tensor<1x8x4x2xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<8x2x1x3xf32>} : tensor<8x2x1x3xf32>
  %y = trt.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x2x4x4xf32>, tensor<8x2x1x3xf32>) -> tensor<1x8x4x2xf32>
  func.return %y : tensor<1x8x4x2xf32>
}
