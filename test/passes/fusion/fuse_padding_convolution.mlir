// RUN: rt-opt %s --split-input-file -p fuse-padding-convolution | filecheck %s

// CHECK-LABEL: @convolution
// CHECK-NEXT: trt.convolution %x, %w {{.*}}pre_padding = array<i64: 1, 3>, post_padding = array<i64: 2, 1>
func.func @convolution(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x9x10xf32> {
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 2>, post = array<i64: 0, 0, 2, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x11x11xf32>
  %y = trt.convolution %p, %w {pre_padding = array<i64: 0, 1>} : (tensor<1x3x11x11xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x9x10xf32>
  func.return %y : tensor<1x4x9x10xf32>
}

// -----

// The pads of SAME are written out before the padding joins them.
// CHECK-LABEL: @same
// CHECK-NEXT: trt.convolution %x, %w {stride = array<i64: 2, 2>, post_padding = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>}
func.func @same(%x: tensor<1x3x7x7xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 0, 0>} : (tensor<1x3x7x7xf32>) -> tensor<1x3x8x8xf32>
  %y = trt.convolution %p, %w {stride = array<i64: 2, 2>, padding_mode = #trt<padding_mode same_upper>, post_padding = array<i64: 0, 0>}
       : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32>
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// CHECK-LABEL: @average
// CHECK-NEXT: trt.pooling average %x {{.*}}average_count_excludes_padding = false
func.func @average(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x9x9xf32> {
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 1, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x10x10xf32>
  %y = trt.pooling average %p {window = array<i64: 2, 2>} : (tensor<1x3x10x10xf32>) -> tensor<1x3x9x9xf32>
  func.return %y : tensor<1x3x9x9xf32>
}

// -----

// CHECK-LABEL: @maximum_of_infinities
// CHECK-NOT: trt.padding
// CHECK: trt.pooling max %x
func.func @maximum_of_infinities(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x9x9xf32> {
  %low = trt.constant {value = dense<"0x000080FF"> : tensor<f32>} : tensor<f32>
  %p = trt.padding %x, %low {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 1, 1>} : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x10x10xf32>
  %y = trt.pooling max %p {window = array<i64: 2, 2>} : (tensor<1x3x10x10xf32>) -> tensor<1x3x9x9xf32>
  func.return %y : tensor<1x3x9x9xf32>
}

// -----

// Zeros may be the maximum; an average that excludes its own pads would exclude these too.
// CHECK-LABEL: @pooling_left_alone
// CHECK: trt.padding
// CHECK: trt.pooling max
// CHECK: trt.pooling average
func.func @pooling_left_alone(%x: tensor<1x3x8x8xf32>) -> (tensor<1x3x9x9xf32>, tensor<1x3x10x10xf32>) {
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 1, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x10x10xf32>
  %y = trt.pooling max %p {window = array<i64: 2, 2>} : (tensor<1x3x10x10xf32>) -> tensor<1x3x9x9xf32>
  %z = trt.pooling average %p {window = array<i64: 2, 2>, pre_padding = array<i64: 1, 1>} : (tensor<1x3x10x10xf32>) -> tensor<1x3x10x10xf32>
  func.return %y, %z : tensor<1x3x9x9xf32>, tensor<1x3x10x10xf32>
}

// -----

// Ones, mirrored cells, padded channels and crops are no zero padding of the image.
// CHECK-LABEL: @convolution_left_alone
// CHECK-COUNT-4: trt.padding
func.func @convolution_left_alone(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> (tensor<1x4x7x7xf32>, tensor<1x4x7x7xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x5xf32>) {
  %one = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %a = trt.padding %x, %one {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 0, 0>} : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x9x9xf32>
  %b = trt.padding %x {pre = array<i64: 0, 0, 1, 1>, post = array<i64: 0, 0, 0, 0>, mode = #trt<pad_mode reflect>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x9x9xf32>
  %c = trt.padding %x {pre = array<i64: 0, 1, 0, 0>, post = array<i64: 0, -1, 0, 0>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  %d = trt.padding %x {pre = array<i64: 0, 0, -1, -1>, post = array<i64: 0, 0, 0, 0>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x7x7xf32>
  %p = trt.convolution %a, %w : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x7x7xf32>
  %q = trt.convolution %b, %w : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x7x7xf32>
  %r = trt.convolution %c, %w : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %s = trt.convolution %d, %w : (tensor<1x3x7x7xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x5x5xf32>
  func.return %p, %q, %r, %s : tensor<1x4x7x7xf32>, tensor<1x4x7x7xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x5xf32>
}

// -----

// Cells around bytes hold their zero point.
// CHECK-LABEL: @bytes
// CHECK: trt.convolution %x, %w {padding_value = 7 : i64, pre_padding = array<i64: 1, 0>, post_padding = array<i64: 0, 1>}
func.func @bytes(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x3x3xi8>) -> tensor<1x4x7x7xi32> {
  %zero = trt.constant {value = dense<7> : tensor<ui8>} : tensor<ui8>
  %p = trt.padding %x, %zero {pre = array<i64: 0, 0, 1, 0>, post = array<i64: 0, 0, 0, 1>} : (tensor<1x3x8x8xui8>, tensor<ui8>) -> tensor<1x3x9x9xui8>
  %y = trt.convolution %p, %w {padding_value = 7 : i64} : (tensor<1x3x9x9xui8>, tensor<4x3x3x3xi8>) -> tensor<1x4x7x7xi32>
  func.return %y : tensor<1x4x7x7xi32>
}

// -----

// Cells of another value than the convolution's own padding stay.
// CHECK-LABEL: @other_value
// CHECK: trt.padding
func.func @other_value(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x3x3xi8>) -> tensor<1x4x7x7xi32> {
  %p = trt.padding %x {pre = array<i64: 0, 0, 1, 0>, post = array<i64: 0, 0, 0, 1>} : (tensor<1x3x8x8xui8>) -> tensor<1x3x9x9xui8>
  %y = trt.convolution %p, %w {padding_value = 7 : i64} : (tensor<1x3x9x9xui8>, tensor<4x3x3x3xi8>) -> tensor<1x4x7x7xi32>
  func.return %y : tensor<1x4x7x7xi32>
}

// -----

// Each zero lengthens a deconvolution's result by a stride, which is not cut off then.
// CHECK-LABEL: @deconvolution
// CHECK-NEXT: trt.deconvolution %x, %w {{.*}}post_padding = array<i64: -2, 1>, pre_padding = array<i64: 0, -4>{{.*}} -> tensor<1x4x11x12xf32>
func.func @deconvolution(%x: tensor<1x3x4x4xf32>, %w: tensor<3x4x3x3xf32>) -> tensor<1x4x11x12xf32> {
  %p = trt.padding %x {pre = array<i64: 0, 0, 0, 2>, post = array<i64: 0, 0, 1, 0>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x5x6xf32>
  %y = trt.deconvolution %p, %w {stride = array<i64: 2, 2>, post_padding = array<i64: 0, 1>} : (tensor<1x3x5x6xf32>, tensor<3x4x3x3xf32>) -> tensor<1x4x11x12xf32>
  func.return %y : tensor<1x4x11x12xf32>
}

// -----

// Ones have results; channels are no cells; what is cut off has some too.
// CHECK-LABEL: @deconvolution_left_alone
// CHECK-COUNT-3: trt.padding
func.func @deconvolution_left_alone(%x: tensor<1x3x4x4xf32>, %w: tensor<3x4x3x3xf32>) -> (tensor<1x4x7x6xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x6xf32>) {
  %one = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %a = trt.padding %x, %one {pre = array<i64: 0, 0, 1, 0>, post = array<i64: 0, 0, 0, 0>} : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x5x4xf32>
  %b = trt.padding %x {pre = array<i64: 0, 1, 0, 0>, post = array<i64: 0, -1, 0, 0>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %c = trt.padding %x {pre = array<i64: 0, 0, -1, 0>, post = array<i64: 0, 0, 0, 0>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x3x4xf32>
  %p = trt.deconvolution %a, %w : (tensor<1x3x5x4xf32>, tensor<3x4x3x3xf32>) -> tensor<1x4x7x6xf32>
  %q = trt.deconvolution %b, %w : (tensor<1x3x4x4xf32>, tensor<3x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  %r = trt.deconvolution %c, %w : (tensor<1x3x3x4xf32>, tensor<3x4x3x3xf32>) -> tensor<1x4x5x6xf32>
  func.return %p, %q, %r : tensor<1x4x7x6xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x6xf32>
}
