// RUN: rt-opt %s --split-input-file -p fuse-quantized-convolution,dce --print-debuginfo | filecheck %s

// tensorrt-features.md#26.1: bytes in, bytes out; the bias -0.3 is -200 in units of 0.05 * 0.03, the zero point takes
// 120 * (5 * 2) from it (10.19). The rectifier is what the unsigned result does anyway.
// CHECK-LABEL: @with_rectifier
// CHECK: [[K:%.*]] = trt.constant {value = dense<5> : tensor<1x2x1x1xi8>} : tensor<1x2x1x1xi8>
// CHECK: [[B:%.*]] = trt.constant {value = dense<-1400> : tensor<1xi32>} : tensor<1xi32>
// CHECK: [[C:%.*]] = trt.convolution %q, [[K]], [[B]] {pre_padding = array<i64: 1, 1>, padding_value = 120 : i64} : (tensor<1x2x4x4xui8>, tensor<1x2x1x1xi8>, tensor<1xi32>) -> tensor<1x1x5x5xi32> loc("conv")
// CHECK: [[F:%.*]] = trt.identity [[C]] : (tensor<1x1x5x5xi32>) -> tensor<1x1x5x5xf32> loc("conv")
// CHECK: [[M:%.*]] = trt.constant {value = dense<6.000000e-03> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
// CHECK: [[P:%.*]] = trt.elementwise prod [[F]], [[M]]
// CHECK: [[ONE:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<f32>} : tensor<f32>
// CHECK: [[Y:%.*]] = trt.quantize [[P]], [[ONE]], %zy : (tensor<1x1x5x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x5x5xui8> loc(fused["conv", "relu", "quantize"])
// CHECK-NEXT: func.return [[Y]]
func.func @with_rectifier(%q: tensor<1x2x4x4xui8>) -> tensor<1x1x5x5xui8> {
  %sx = trt.constant {value = dense<0.05> : tensor<f32>} : tensor<f32>
  %zx = trt.constant {value = dense<120> : tensor<ui8>} : tensor<ui8>
  %sw = trt.constant {value = dense<0.03> : tensor<f32>} : tensor<f32>
  %sy = trt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %zy = trt.constant {value = dense<0> : tensor<ui8>} : tensor<ui8>
  %b = trt.constant {value = dense<-0.3> : tensor<1xf32>} : tensor<1xf32>
  %k = trt.constant {value = dense<5> : tensor<1x2x1x1xi8>} : tensor<1x2x1x1xi8>
  %a = trt.dequantize %q, %sx, %zx : (tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xf32>
  %w = trt.dequantize %k, %sw : (tensor<1x2x1x1xi8>, tensor<f32>) -> tensor<1x2x1x1xf32>
  %c = trt.convolution %a, %w, %b {pre_padding = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>, tensor<1xf32>) -> tensor<1x1x5x5xf32> loc("conv")
  %r = trt.activation relu %c : (tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32> loc("relu")
  %y = trt.quantize %r, %sy, %zy : (tensor<1x1x5x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x5x5xui8> loc("quantize")
  func.return %y : tensor<1x1x5x5xui8>
}

// -----

// tensorrt-features.md#26.3: without a quantisation behind it, the result is float32. Weights of ui8 lose their zero
// point, and each kernel has its scale.
// CHECK-LABEL: @without_quantization
// CHECK: [[K:%.*]] = trt.constant {value = dense<{{\[\[\[\[}}-128]]], {{\[\[\[}}127]]]]> : tensor<2x1x1x1xi8>}
// CHECK: [[C:%.*]] = trt.convolution %q, [[K]] : (tensor<1x1x4x4xi8>, tensor<2x1x1x1xi8>) -> tensor<1x2x4x4xi32>
// CHECK: trt.constant {value = dense<{{\[\[\[\[}}2.500000e-01]], {{\[\[}}5.000000e-01]]]]> : tensor<1x2x1x1xf32>}
// CHECK: trt.elementwise prod
// CHECK: trt.softmax
func.func @without_quantization(%q: tensor<1x1x4x4xi8>) -> tensor<1x2x4x4xf32> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %zw = trt.constant {value = dense<128> : tensor<2xui8>} : tensor<2xui8>
  %k = trt.constant {value = dense<[[[[0]]], [[[255]]]]> : tensor<2x1x1x1xui8>} : tensor<2x1x1x1xui8>
  %a = trt.dequantize %q, %sx : (tensor<1x1x4x4xi8>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %w = trt.dequantize %k, %sw, %zw {axis = 0 : i64} : (tensor<2x1x1x1xui8>, tensor<2xf32>, tensor<2xui8>) -> tensor<2x1x1x1xf32>
  %c = trt.convolution %a, %w : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = trt.softmax %c {axis = 1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// A rectifier of a signed result stays, and so does a clip at 2.0 = 4 * 0.5, in units of the result.
// CHECK-LABEL: @activations_that_stay
// CHECK: [[P:%.*]] = trt.elementwise prod
// CHECK: [[R:%.*]] = trt.activation relu [[P]]
// CHECK: [[L:%.*]] = trt.activation clip [[R]] {alpha = -4.000000e+00 : f64, beta = 4.000000e+00 : f64}
// CHECK: trt.quantize [[L]]
func.func @activations_that_stay(%q: tensor<1x1x4x4xi8>) -> tensor<1x1x4x4xi8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %k = trt.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %a = trt.dequantize %q, %s : (tensor<1x1x4x4xi8>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %w = trt.dequantize %k, %s : (tensor<1x1x1x1xi8>, tensor<f32>) -> tensor<1x1x1x1xf32>
  %c = trt.convolution %a, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %r = trt.activation relu %c : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %l = trt.activation clip %r {alpha = -2.0 : f64, beta = 2.0 : f64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = trt.quantize %l, %s : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xi8>
  func.return %y : tensor<1x1x4x4xi8>
}

// -----

// tensorrt-features.md#10.5: activations with one scale per channel are not for sums over channels.
// CHECK-LABEL: @scales_of_input_channels
// CHECK: trt.convolution {{.*}} -> tensor<1x1x4x4xf32>
func.func @scales_of_input_channels(%q: tensor<1x2x4x4xi8>) -> tensor<1x1x4x4xf32> {
  %sx = trt.constant {value = dense<[0.5, 0.25]> : tensor<2xf32>} : tensor<2xf32>
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %k = trt.constant {value = dense<3> : tensor<1x2x1x1xi8>} : tensor<1x2x1x1xi8>
  %a = trt.dequantize %q, %sx {axis = 1 : i64} : (tensor<1x2x4x4xi8>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %w = trt.dequantize %k, %s : (tensor<1x2x1x1xi8>, tensor<f32>) -> tensor<1x2x1x1xf32>
  %c = trt.convolution %a, %w : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return %c : tensor<1x1x4x4xf32>
}

// -----

// Weights from -200 to 55 are no bytes with a sign.
// CHECK-LABEL: @weights_beyond_int8
// CHECK: trt.convolution {{.*}} -> tensor<1x2x4x4xf32>
func.func @weights_beyond_int8(%q: tensor<1x1x4x4xi8>) -> tensor<1x2x4x4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<200> : tensor<ui8>} : tensor<ui8>
  %k = trt.constant {value = dense<[[[[0]]], [[[255]]]]> : tensor<2x1x1x1xui8>} : tensor<2x1x1x1xui8>
  %a = trt.dequantize %q, %s : (tensor<1x1x4x4xi8>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %w = trt.dequantize %k, %s, %z : (tensor<2x1x1x1xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x1x1x1xf32>
  %c = trt.convolution %a, %w : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %c : tensor<1x2x4x4xf32>
}
