// RUN: rt-opt %s | rt-opt | filecheck %s
// Convolutions over one, two and three axes.

// CHECK-LABEL: func.func @with_bias_and_stride
func.func @with_bias_and_stride(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf32>, %b: tensor<4xf32>) {
  // CHECK: %y = trt.convolution %x, %w, %b {stride = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  %y = trt.convolution %x, %w, %b {stride = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @one_axis
func.func @one_axis(%x: tensor<2x3x9xf16>, %w: tensor<4x3x3xf16>) {
  // CHECK: %y = trt.convolution %x, %w {dilation = array<i64: 2>} : (tensor<2x3x9xf16>, tensor<4x3x3xf16>) -> tensor<2x4x5xf16>
  %y = trt.convolution %x, %w {dilation = array<i64: 2>} : (tensor<2x3x9xf16>, tensor<4x3x3xf16>) -> tensor<2x4x5xf16>
  func.return
}

// CHECK-LABEL: func.func @three_axes
func.func @three_axes(%x: tensor<1x2x4x4x4xf32>, %w: tensor<6x1x3x3x3xf32>) {
  // CHECK: %y = trt.convolution %x, %w {pre_padding = array<i64: 1, 1, 1>, post_padding = array<i64: 1, 1, 1>, num_groups = 2 : i64} : (tensor<1x2x4x4x4xf32>, tensor<6x1x3x3x3xf32>) -> tensor<1x6x4x4x4xf32>
  %y = trt.convolution %x, %w {pre_padding = array<i64: 1, 1, 1>, post_padding = array<i64: 1, 1, 1>, num_groups = 2 : i64} : (tensor<1x2x4x4x4xf32>, tensor<6x1x3x3x3xf32>) -> tensor<1x6x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @symbolic_and_same
func.func @symbolic_and_same(%x: tensor<?x3x8x?xf32, #trt.dims<["n", "3", "8", "w"]>>, %w: tensor<4x3x3x3xf32>) {
  // CHECK: %y = trt.convolution %x, %w {stride = array<i64: 2, 2>, padding_mode = #trt<padding_mode same_upper>} : (tensor<?x3x8x?xf32, #trt.dims<["n", "3", "8", "w"]>>, tensor<4x3x3x3xf32>) -> tensor<?x4x4x?xf32, #trt.dims<["n", "4", "4", "(w + 1) // 2"]>>
  %y = trt.convolution %x, %w {stride = array<i64: 2, 2>, padding_mode = #trt<padding_mode same_upper>} : (tensor<?x3x8x?xf32, #trt.dims<["n", "3", "8", "w"]>>, tensor<4x3x3x3xf32>) -> tensor<?x4x4x?xf32, #trt.dims<["n", "4", "4", "(w + 1) // 2"]>>
  func.return
}

// CHECK-LABEL: func.func @leading_axes_are_batch
func.func @leading_axes_are_batch(%x: tensor<5x2x3x4x4xf32>, %w: tensor<4x3x1x1xf32>) {
  // CHECK: %y = trt.convolution %x, %w : (tensor<5x2x3x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<5x2x4x4x4xf32>
  %y = trt.convolution %x, %w : (tensor<5x2x3x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<5x2x4x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @bytes
func.func @bytes(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x3x3xi8>, %b: tensor<4xi32>) {
  // CHECK: %y = trt.convolution %x, %w, %b {pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 128 : i64} : (tensor<1x3x8x8xui8>, tensor<4x3x3x3xi8>, tensor<4xi32>) -> tensor<1x4x8x8xi32>
  %y = trt.convolution %x, %w, %b {pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 128 : i64} : (tensor<1x3x8x8xui8>, tensor<4x3x3x3xi8>, tensor<4xi32>) -> tensor<1x4x8x8xi32>
  func.return
}
