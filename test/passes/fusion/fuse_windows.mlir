// RUN: rt-opt %s --split-input-file -p fuse-windows | filecheck %s

// Windows of two and of three elements, side by side: windows of six.
// CHECK-LABEL: @largest
// CHECK: fused.window max %x {window = array<i64: 6>, stride = array<i64: 6>, dilation = array<i64: 1>
// CHECK-NEXT: ^
// CHECK-NEXT: arith.negf
// CHECK-NOT: fused.window
func.func @largest(%x: tensor<3x1x20xf32>) -> tensor<3x1x3xf32> {
  %p = fused.window max %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x20xf32>) -> tensor<3x1x10xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.window max %p {window = array<i64: 3>, stride = array<i64: 3>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x10xf32>) -> tensor<3x1x3xf32> {
  ^bb0(%t: f32):
    %n = arith.negf %t : f32
    fused.yield %n : f32
  }
  func.return %y : tensor<3x1x3xf32>
}

// -----

// The padding of the first is that of the larger window; halves are rounded where the type of elements asks for it.
// CHECK-LABEL: @padded_and_overlapping
// CHECK: fused.window max %x {window = array<i64: 5>, stride = array<i64: 4>, dilation = array<i64: 1>, pre_padding = #trt.dims<["1"]>, post_padding = #trt.dims<["1"]>} : (tensor<3x1x20xf16>) -> tensor<3x1x5xf16>
// CHECK-NOT: fused.window
func.func @padded_and_overlapping(%x: tensor<3x1x20xf16>) -> tensor<3x1x5xf16> {
  %p = fused.window max %x {window = array<i64: 3>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["1"]>, post_padding = #trt.dims<["1"]>} : (tensor<3x1x20xf16>) -> tensor<3x1x10xf16> {
  ^bb0(%t: f32):
    %n = arith.truncf %t : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window max %p {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x10xf16>) -> tensor<3x1x5xf16> {
  ^bb0(%t: f32):
    %n = arith.truncf %t : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<3x1x5xf16>
}

// -----

// Means of two axes, and the mean of these.
// CHECK-LABEL: @mean_of_means
// CHECK: fused.window average %x {window = array<i64: 4, 6>, stride = array<i64: 4, 6>
// CHECK-NOT: fused.window
func.func @mean_of_means(%x: tensor<1x2x9x19xf32>) -> tensor<1x2x2x3xf32> {
  %p = fused.window average %x {window = array<i64: 2, 3>, stride = array<i64: 2, 3>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x2x9x19xf32>) -> tensor<1x2x4x6xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.window average %p {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x2x4x6xf32>) -> tensor<1x2x2x3xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// A mean at a border counts fewer elements than others.
// CHECK-LABEL: @mean_of_padded_means
// CHECK-COUNT-2: fused.window average
func.func @mean_of_padded_means(%x: tensor<1x2x9xf32>) -> tensor<1x2x2xf32> {
  %p = fused.window average %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["1"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x9xf32>) -> tensor<1x2x5xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.window average %p {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x5xf32>) -> tensor<1x2x2xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2x2xf32>
}

// -----

// Windows of five elements that move by one: 25 elements are more than nine twice.
// CHECK-LABEL: @much_overlap
// CHECK-COUNT-2: fused.window max
func.func @much_overlap(%x: tensor<1x2x9x9xf32>) -> tensor<1x2x5x5xf32> {
  %p = fused.window max %x {window = array<i64: 3, 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x2x9x9xf32>) -> tensor<1x2x7x7xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.window max %p {window = array<i64: 3, 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x2x7x7xf32>) -> tensor<1x2x5x5xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2x5x5xf32>
}

// -----

// Every second element only: the larger window would have the others too.
// CHECK-LABEL: @gaps
// CHECK-COUNT-2: fused.window max
func.func @gaps(%x: tensor<1x2x9xf32>) -> tensor<1x2x2xf32> {
  %p = fused.window max %x {window = array<i64: 1>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x9xf32>) -> tensor<1x2x5xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.window max %p {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x5xf32>) -> tensor<1x2x2xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2x2xf32>
}

// -----

// The square of the largest is none that is compared.
// CHECK-LABEL: @computes_more
// CHECK-COUNT-2: fused.window max
func.func @computes_more(%x: tensor<1x2x9xf32>) -> tensor<1x2x2xf32> {
  %p = fused.window max %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x9xf32>) -> tensor<1x2x4xf32> {
  ^bb0(%t: f32):
    %s = arith.mulf %t, %t : f32
    fused.yield %s : f32
  }
  %y = fused.window max %p {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<1x2x4xf32>) -> tensor<1x2x2xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2x2xf32>
}
