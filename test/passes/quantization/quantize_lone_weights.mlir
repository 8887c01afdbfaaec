// RUN: rt-opt %s --split-input-file -p quantize-lone-weights,dce --print-debuginfo | filecheck %s

// Weights from -1 to 1.55 have steps of 0.01, of which zero is step -28; the bias is in units of 0.5 * 0.01.
// CHECK-LABEL: @deconvolution
// CHECK: [[X:%.*]] = trt.dequantize %q
// CHECK: [[INTEGERS:%.*]] = trt.constant {value = dense<100> : tensor<1xi32>}
// CHECK: [[UNIT:%.*]] = trt.constant
// CHECK: [[BIAS:%.*]] = trt.dequantize [[INTEGERS]], [[UNIT]] : (tensor<1xi32>, tensor<f32>) -> tensor<1xf32>
// CHECK: [[BYTES:%.*]] = trt.constant {value = dense<{{.*}}-128{{.*}}127{{.*}}-28{{.*}}> : tensor<1x1x1x3xi8>}
// CHECK: [[STEP:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<f32>} : tensor<f32>
// CHECK: [[ZERO:%.*]] = trt.constant {value = dense<-28> : tensor<i8>}
// CHECK: [[KERNEL:%.*]] = trt.dequantize [[BYTES]], [[STEP]], [[ZERO]] : (tensor<1x1x1x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x1x1x3xf32> loc("up")
// CHECK: trt.deconvolution [[X]], [[KERNEL]], [[BIAS]] {stride = array<i64: 1, 1>} {{.*}} loc("up")
func.func @deconvolution(%q: tensor<1x1x2x2xui8>) -> tensor<1x1x2x4xui8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<[[[[-1.0, 1.55, 0.0]]]]> : tensor<1x1x1x3xf32>} : tensor<1x1x1x3xf32>
  %b = trt.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>
  %x = trt.dequantize %q, %s : (tensor<1x1x2x2xui8>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %c = trt.deconvolution %x, %w, %b {stride = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x1x3xf32>, tensor<1xf32>) -> tensor<1x1x2x4xf32> loc("up")
  %r = trt.activation relu %c : (tensor<1x1x2x4xf32>) -> tensor<1x1x2x4xf32>
  %y = trt.quantize %r, %s : (tensor<1x1x2x4xf32>, tensor<f32>) -> tensor<1x1x2x4xui8>
  func.return %y : tensor<1x1x2x4xui8>
}

// -----

// The result stays float32, the input is; weights are bytes already.
// CHECK-LABEL: @others
// CHECK: trt.convolution {{%.*}}, %w :
// CHECK: trt.convolution %f, %w :
// CHECK: [[K:%.*]] = trt.dequantize %k, %s
// CHECK: trt.convolution {{%.*}}, [[K]] :
func.func @others(%q: tensor<1x1x2x2xui8>, %f: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xui8>, tensor<1x1x2x2xui8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<0.7> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %k = trt.constant {value = dense<7> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %x = trt.dequantize %q, %s : (tensor<1x1x2x2xui8>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %a = trt.convolution %x, %w : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %b = trt.convolution %f, %w : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %y = trt.quantize %b, %s : (tensor<1x1x2x2xf32>, tensor<f32>) -> tensor<1x1x2x2xui8>
  %v = trt.dequantize %k, %s : (tensor<1x1x1x1xi8>, tensor<f32>) -> tensor<1x1x1x1xf32>
  %c = trt.convolution %x, %v : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %z = trt.quantize %c, %s : (tensor<1x1x2x2xf32>, tensor<f32>) -> tensor<1x1x2x2xui8>
  func.return %a, %y, %z : tensor<1x1x2x2xf32>, tensor<1x1x2x2xui8>, tensor<1x1x2x2xui8>
}

// -----

// A product of matrices with a bias is a layer with weights; one without may be anything.
// CHECK-LABEL: @products
// CHECK: [[BIAS:%.*]] = trt.dequantize {{%.*}} : (tensor<1x2xi32>, tensor<f32>) -> tensor<1x2xf32>
// CHECK: [[W:%.*]] = trt.dequantize {{%.*}} : (tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2xf32>
// CHECK: [[P:%.*]] = trt.matrix_multiply {{%.*}}, [[W]] :
// CHECK: trt.elementwise sum [[P]], [[BIAS]]
// CHECK: trt.matrix_multiply {{%.*}}, %w :
func.func @products(%q: tensor<4x3xui8>) -> (tensor<4x2xui8>, tensor<4x2xui8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<[[1.0, -1.0], [0.5, 0.25], [0.0, 2.0]]> : tensor<3x2xf32>} : tensor<3x2xf32>
  %b = trt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %x = trt.dequantize %q, %s : (tensor<4x3xui8>, tensor<f32>) -> tensor<4x3xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %t = trt.elementwise sum %p, %b : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %y = trt.quantize %t, %s : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xui8>
  %r = trt.matrix_multiply %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %z = trt.quantize %r, %s : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xui8>
  func.return %y, %z : tensor<4x2xui8>, tensor<4x2xui8>
}

// -----

// A layer that is asked to compute in float32 does so (tensorrt-features.md#4.11, 10.2).
// CHECK-LABEL: @asked
// CHECK: trt.convolution {{%.*}}, %w
func.func @asked(%q: tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xui8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<0.7> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %x = trt.dequantize %q, %s : (tensor<1x1x2x2xui8>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %c = trt.convolution %x, %w {trt.precision = "fp32"} : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  %y = trt.quantize %c, %s : (tensor<1x1x2x2xf32>, tensor<f32>) -> tensor<1x1x2x2xui8>
  func.return %y : tensor<1x1x2x2xui8>
}
