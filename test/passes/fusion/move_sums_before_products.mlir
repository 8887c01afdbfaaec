// RUN: rt-opt %s --split-input-file -p move-sums-before-products,dce --print-debuginfo | filecheck %s

// The columns of the matrix are 2 and 3 times taken, and halved by the mean.
// CHECK-LABEL: @columns
// CHECK-NEXT: [[W:%.*]] = trt.constant {value = dense<{{\[}}[4.000000e+00, 8.000000e+00]]> : tensor<1x2xf32>}
// CHECK-NEXT: [[P:%.*]] = trt.elementwise prod %x, [[W]] : {{.*}} loc(fused["product", "scale", "bias", "mean"])
// CHECK-NEXT: [[T:%.*]] = trt.reduce sum [[P]] {axes = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4x1xf32>
// CHECK-NEXT: [[B:%.*]] = trt.constant {value = dense<5.000000e+00> : tensor<1x1xf32>}
// CHECK-NEXT: [[S:%.*]] = trt.elementwise sum [[T]], [[B]]
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle [[S]] {reshape_dims = #trt.dims<["4"]>, zero_is_placeholder = false}
// CHECK-NEXT: func.return [[Y]]
func.func @columns(%x: tensor<4x2xf32>) -> tensor<4xf32> {
  %w = trt.constant {value = dense<[[1.0, 2.0], [2.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %s = trt.constant {value = dense<[[2.0, 3.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %b = trt.constant {value = dense<5.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32> loc("product")
  %q = trt.elementwise prod %s, %p : (tensor<1x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32> loc("scale")
  %r = trt.elementwise sum %q, %b : (tensor<4x2xf32>, tensor<1x1xf32>) -> tensor<4x2xf32> loc("bias")
  %y = trt.reduce avg %r {axes = array<i64: 1>, keep_dims = false} : (tensor<4x2xf32>) -> tensor<4xf32> loc("mean")
  func.return %y : tensor<4xf32>
}

// -----

// Every pixel adds to results by all four taps, which are added: 1 + 2 + 3 + 4, 16 of 25 pixels.
// CHECK-LABEL: @whole_deconvolution
// CHECK: [[M:%.*]] = trt.reduce avg {{%.*}} {axes = array<i64: 3, 4>, keep_dims = false} : (tensor<2x1x1x4x4xf32>) -> tensor<2x1x1xf32>
// CHECK: trt.constant {value = dense<6.400000e+00> : tensor<1x1xf32>}
// CHECK-NEXT: trt.matrix_multiply
// CHECK-NOT: trt.deconvolution
func.func @whole_deconvolution(%x: tensor<2x1x4x4xf32>) -> tensor<2x1x1x1xf32> {
  %w = trt.constant {value = dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>} : tensor<1x1x2x2xf32>
  %c = trt.deconvolution %x, %w : (tensor<2x1x4x4xf32>, tensor<1x1x2x2xf32>) -> tensor<2x1x5x5xf32>
  %y = trt.reduce avg %c {axes = array<i64: 2, 3>} : (tensor<2x1x5x5xf32>) -> tensor<2x1x1x1xf32>
  func.return %y : tensor<2x1x1x1xf32>
}

// -----

// The first tap of a padded window does not reach the last row, the third one not the first one: three sums of rows, of
// which each is a channel of a convolution along the rest.
// CHECK-LABEL: @rows_of_a_convolution
// CHECK: trt.constant {{.*}} : tensor<1x1x3x16x1xf32>
// CHECK: trt.elementwise prod
// CHECK: trt.reduce avg {{%.*}} {axes = array<i64: 3>, keep_dims = false} : (tensor<1x2x3x16x8xf32>) -> tensor<1x2x3x8xf32>
// CHECK: trt.convolution {{%.*}}, {{%.*}} {stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = array<i64: 1>, post_padding = array<i64: 0>} : (tensor<1x6x8xf32>, tensor<4x6x3xf32>) -> tensor<1x4x4xf32>
func.func @rows_of_a_convolution(%x: tensor<1x2x16x8xf32>) -> tensor<1x4x1x4xf32> {
  %w = trt.constant {value = dense<1.0> : tensor<4x2x3x3xf32>} : tensor<4x2x3x3xf32>
  %c = trt.convolution %x, %w {stride = array<i64: 1, 2>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 0>} : (tensor<1x2x16x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x16x4xf32>
  %y = trt.reduce sum %c {axes = array<i64: 2>} : (tensor<1x4x16x4xf32>) -> tensor<1x4x1x4xf32>
  func.return %y : tensor<1x4x1x4xf32>
}

// -----

// Halves are added in float32.
// CHECK-LABEL: @halves
// CHECK: [[X:%.*]] = trt.identity %x : (tensor<4x2xf16>) -> tensor<4x2xf32>
// CHECK: trt.reduce sum {{.*}} -> tensor<4x1xf32>
// CHECK: trt.identity {{.*}} -> tensor<4x1xf16>
func.func @halves(%x: tensor<4x2xf16>) -> tensor<4x1xf16> {
  %w = trt.constant {value = dense<1.0> : tensor<2x2xf16>} : tensor<2x2xf16>
  %p = trt.matrix_multiply %x, %w : (tensor<4x2xf16>, tensor<2x2xf16>) -> tensor<4x2xf16>
  %y = trt.reduce sum %p {axes = array<i64: 1>} : (tensor<4x2xf16>) -> tensor<4x1xf16>
  func.return %y : tensor<4x1xf16>
}

// -----

// The rows are summed, the product has two readers, an activation lies between, the matrix is computed, the largest is
// no sum, and a mean of four pixels is not worth nine sums.
// CHECK-LABEL: @left_alone
// CHECK-COUNT-5: trt.matrix_multiply
// CHECK: trt.convolution
// CHECK-NOT: trt.matrix_multiply
func.func @left_alone(%x: tensor<4x2xf32>, %v: tensor<2x2xf32>, %i: tensor<1x1x2x2xf32>)
    -> (tensor<1x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<1x1x1x1xf32>) {
  %w = trt.constant {value = dense<1.0> : tensor<2x2xf32>} : tensor<2x2xf32>
  %a = trt.matrix_multiply %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %a1 = trt.reduce sum %a {axes = array<i64: 0>} : (tensor<4x2xf32>) -> tensor<1x2xf32>
  %b = trt.matrix_multiply %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %b1 = trt.reduce sum %b {axes = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4x1xf32>
  %c = trt.matrix_multiply %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %c1 = trt.activation relu %c : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %c2 = trt.reduce sum %c1 {axes = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4x1xf32>
  %d = trt.matrix_multiply %x, %v : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %d1 = trt.reduce sum %d {axes = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4x1xf32>
  %e = trt.matrix_multiply %x, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %e1 = trt.reduce max %e {axes = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4x1xf32>
  %k = trt.constant {value = dense<1.0> : tensor<1x1x3x3xf32>} : tensor<1x1x3x3xf32>
  %f = trt.convolution %i, %k {pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  %f1 = trt.reduce avg %f {axes = array<i64: 2, 3>} : (tensor<1x1x2x2xf32>) -> tensor<1x1x1x1xf32>
  func.return %a1, %b, %b1, %c2, %d1, %e1, %f1 : tensor<1x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<1x1x1x1xf32>
}
