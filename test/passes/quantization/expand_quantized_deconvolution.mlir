// RUN: rt-opt %s --split-input-file -p expand-quantized-deconvolution,dce --print-debuginfo | filecheck %s

// Both remainders of 2 along each axis are channels of one convolution; its int8 results are put into their places.
// CHECK-LABEL: @side_by_side
// CHECK: [[K:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<4x1x1x1xi8>} : tensor<4x1x1x1xi8>
// CHECK: [[W:%.*]] = trt.dequantize [[K]], {{%.*}} : (tensor<4x1x1x1xi8>, tensor<f32>) -> tensor<4x1x1x1xf32>
// CHECK: [[C:%.*]] = trt.convolution {{%.*}}, [[W]] {pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x1x3x3xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x3x3xf32> loc("up")
// CHECK: [[R:%.*]] = trt.activation relu [[C]]
// CHECK: [[Q:%.*]] = trt.quantize [[R]], %sy : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xi8>
// CHECK: [[S:%.*]] = trt.shuffle [[Q]] {reshape_dims = #trt.dims<["1", "1", "2", "2", "1", "3", "3"]>}
// CHECK: [[T:%.*]] = trt.shuffle [[S]] {first_transpose = array<i64: 0, 1, 4, 5, 2, 6, 3>}
// CHECK: [[Y:%.*]] = trt.shuffle [[T]] {reshape_dims = #trt.dims<["1", "1", "6", "6"]>} : {{.*}} -> tensor<1x1x6x6xi8>
// CHECK-NEXT: func.return [[Y]]
func.func @side_by_side(%q: tensor<1x1x3x3xi8>) -> tensor<1x1x6x6xi8> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %sy = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %k = trt.constant {value = dense<[[[[1, 2], [3, 4]]]]> : tensor<1x1x2x2xi8>} : tensor<1x1x2x2xi8>
  %a = trt.dequantize %q, %sx : (tensor<1x1x3x3xi8>, tensor<f32>) -> tensor<1x1x3x3xf32>
  %w = trt.dequantize %k, %sw : (tensor<1x1x2x2xi8>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %c = trt.deconvolution %a, %w {stride = array<i64: 2, 2>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x6x6xf32> loc("up")
  %r = trt.activation relu %c : (tensor<1x1x6x6xf32>) -> tensor<1x1x6x6xf32>
  %y = trt.quantize %r, %sy : (tensor<1x1x6x6xf32>, tensor<f32>) -> tensor<1x1x6x6xi8>
  func.return %y : tensor<1x1x6x6xi8>
}

// -----

// A result that stays float keeps the deconvolution, which would need its sums as int32.
// CHECK-LABEL: @read_as_float
// CHECK: trt.deconvolution
// CHECK-NOT: trt.convolution
func.func @read_as_float(%q: tensor<1x1x3x3xi8>) -> tensor<1x1x6x6xf32> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %k = trt.constant {value = dense<[[[[1, 2], [3, 4]]]]> : tensor<1x1x2x2xi8>} : tensor<1x1x2x2xi8>
  %a = trt.dequantize %q, %sx : (tensor<1x1x3x3xi8>, tensor<f32>) -> tensor<1x1x3x3xf32>
  %w = trt.dequantize %k, %sw : (tensor<1x1x2x2xi8>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %c = trt.deconvolution %a, %w {stride = array<i64: 2, 2>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x6x6xf32>
  func.return %c : tensor<1x1x6x6xf32>
}
