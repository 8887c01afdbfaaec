// RUN: rt-opt %s --run=reference

// What pooled convolutions mean: of a residual the elements are read where the sums lie, windows may have any size.
func.func @residual() {
  %x = check.input {value = dense<[[[[1.0, 2.0, 3.0, 4.0], [8.0, 7.0, 6.0, 5.0], [0.0, 0.0, 0.0, 9.0]], [[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0]]]]> : tensor<1x2x3x4xf32>} : tensor<1x2x3x4xf32>
  %r = check.input {value = dense<[[[[0.0, 0.5, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0], [7.0, 7.0, 7.0, 7.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0], [7.0, 7.0, 7.0, 7.0]]]]> : tensor<1x2x3x4xf32>} : tensor<1x2x3x4xf32>
  %w = trt.constant {value = dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %y = fused.convolution %x, %w, %r {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 2 : i64, pooling = #fused.pooling<max [2, 2]>, access = [#fused.access<["d0", "d1", "d2", "d3"]>]}
    : (tensor<1x2x3x4xf32>, tensor<2x1x1x1xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x1x2xf32> {
  ^bb0(%acc: f32, %res: f32):
    %s = arith.addf %acc, %res : f32
    fused.yield %s : f32
  }
  %expected = trt.constant {value = dense<[[[[16.0, 6.0]], [[4.0, 8.0]]]]> : tensor<1x2x1x2xf32>} : tensor<1x2x1x2xf32>
  check.expect_close %y, %expected : tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32>
  func.return
}

func.func @volume() {
  %x = check.input {value = dense<[[[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 9.0]]]]]> : tensor<1x1x2x1x3xf32>} : tensor<1x1x2x1x3xf32>
  %w = trt.constant {value = dense<2.0> : tensor<1x1x1x1x1xf32>} : tensor<1x1x1x1x1xf32>
  %y = fused.convolution %x, %w {stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 0, 0, 0>, post_padding = array<i64: 0, 0, 0>, pooling = #fused.pooling<average [2, 1, 3]>}
    : (tensor<1x1x2x1x3xf32>, tensor<1x1x1x1x1xf32>) -> tensor<1x1x1x1x1xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %expected = trt.constant {value = dense<8.0> : tensor<1x1x1x1x1xf32>} : tensor<1x1x1x1x1xf32>
  check.expect_close %y, %expected : tensor<1x1x1x1x1xf32>, tensor<1x1x1x1x1xf32>
  func.return
}

// A deconvolution with strides gives 1, 2, 2, 4, 3, 6, of which two and two are compared.
func.func @deconvolution() {
  %x = check.input {value = dense<[[[[1.0, 2.0, 3.0]]]]> : tensor<1x1x1x3xf32>} : tensor<1x1x1x3xf32>
  %w = trt.constant {value = dense<[[[[1.0, 2.0]]]]> : tensor<1x1x1x2xf32>} : tensor<1x1x1x2xf32>
  %y = fused.convolution %x, %w {stride = array<i64: 1, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true, pooling = #fused.pooling<max [1, 2]>}
    : (tensor<1x1x1x3xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x1x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %expected = trt.constant {value = dense<[[[[2.0, 4.0, 6.0]]]]> : tensor<1x1x1x3xf32>} : tensor<1x1x1x3xf32>
  check.expect_close %y, %expected : tensor<1x1x1x3xf32>, tensor<1x1x1x3xf32>
  func.return
}

// Sums of boxes of the largest of each two elements; the last box of a row has one of them.
func.func @totals() {
  %x = check.input {value = dense<[[[[1.0, 2.0, 4.0, 3.0, 5.0, 0.0, 9.0], [0.0, 6.0, 1.0, 1.0, 2.0, 7.0, 9.0]]]]> : tensor<1x1x2x7xf32>} : tensor<1x1x2x7xf32>
  %w = trt.constant {value = dense<1.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %y = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, pooling = #fused.pooling<max [1, 2]>, totals = #fused.totals<[2, 2] of [2, 3]>}
    : (tensor<1x1x2x7xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %expected = trt.constant {value = dense<[[[[13.0, 12.0]]]]> : tensor<1x1x1x2xf32>} : tensor<1x1x1x2xf32>
  check.expect_close %y, %expected : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>
  func.return
}
