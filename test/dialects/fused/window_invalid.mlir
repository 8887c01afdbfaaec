// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @window_c1(%x: tensor<1x2x7xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{C1: fused.window has 1 extra operands and 0 accesses}}
  %y = fused.window max %x, %s {window = array<i64: 3>, stride = array<i64: 1>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>}
    : (tensor<1x2x7xf32>, tensor<2xf32>) -> tensor<1x2x5xf32> {
  ^bb0(%acc: f32, %e: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @window_c2(%x: tensor<1x2x7xf32>) {
  // expected-error@+1 {{C2: window, stride, dilation and pads of fused.window have different numbers of entries}}
  %y = fused.window max %x {window = array<i64: 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>}
    : (tensor<1x2x7xf32>) -> tensor<1x2x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @window_c2_stride(%x: tensor<1x2x7xf32>) {
  // expected-error@+1 {{C2: fused.window needs positive strides and dilations}}
  %y = fused.window max %x {window = array<i64: 3>, stride = array<i64: 0>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>}
    : (tensor<1x2x7xf32>) -> tensor<1x2x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @window_c3(%x: tensor<1x2xf32>) {
  // expected-error@+1 {{C3: fused.window over axes (2,) of tensor<1x2xf32> is not tensor<1x2xf32>}}
  %y = fused.window max %x {window = array<i64: 3>, stride = array<i64: 1>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>}
    : (tensor<1x2xf32>) -> tensor<1x2xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}
