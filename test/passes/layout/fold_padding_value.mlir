// RUN: rt-opt %s -p fold-padding-value --split-input-file | filecheck %s

// The four corners miss five of nine weights, the edges three: each is 2, the value of the padding 3.
// CHECK-LABEL: @border
// CHECK:         [[SUMS:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<2x3x1xi32>} : tensor<2x3x1xi32>
// CHECK:         fused.convolution %x, %w, [[SUMS]]
// CHECK-NOT:     padding_value
// CHECK-SAME:    access = [#fused.access<["d2", "d3", "d1"]>]
// CHECK-NEXT:    ^bb0([[ACC:%.*]]: i32, [[MORE:%.*]]: i32):
// CHECK-NEXT:      [[SUM:%.*]] = arith.addi [[ACC]], [[MORE]] : i32
// CHECK-NEXT:      fused.yield [[SUM]] : i32
func.func @border(%x: tensor<1x1x2x3xui8, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>) -> tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<2> : tensor<1x1x3x3xi8>} : tensor<1x1x3x3xi8>
  %y = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 3 : i64} : (tensor<1x1x2x3xui8, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>, tensor<1x1x3x3xi8>) -> tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>
}

// -----

// Nothing lies in the padding of a single pixel.
// CHECK-LABEL: @pixel
// CHECK:         fused.convolution %x, %w
// CHECK-NOT:     padding_value
// CHECK-SAME:    : (tensor<1x1x2x3xui8
func.func @pixel(%x: tensor<1x1x2x3xui8, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>) -> tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<2> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %y = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, padding_value = 3 : i64} : (tensor<1x1x2x3xui8, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>, tensor<1x1x1x1xi8>) -> tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<1x1x2x3xi32, #trt.dims<["1", "1", "2", "3"], order = [0, 2, 3, 1]>>
}
