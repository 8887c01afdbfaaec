// RUN: rt-opt %s --split-input-file -p convert-precision,dce --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'convert-precision{to=bf16},dce' | filecheck %s --check-prefix=BF16
// RUN: rt-opt %s --split-input-file -p 'convert-precision{to=f32},canonicalize,dce' | filecheck %s --check-prefix=F32

// CHECK-LABEL: @network
// CHECK-SAME: -> (tensor<2x3xf32>, tensor<2x3xi64>)
// CHECK: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<3x3xf16>} : tensor<3x3xf16>
// CHECK: [[H:%.*]] = trt.identity %x : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK: [[P:%.*]] = trt.matrix_multiply [[H]], [[W]] : {{.*}} -> tensor<2x3xf16> loc("product")
// CHECK: [[S:%.*]] = trt.softmax [[P]] {{.*}} -> tensor<2x3xf16>
// CHECK: [[V:%.*]], [[I:%.*]] = trt.topk max [[S]] {{.*}} -> (tensor<2x3xf16>, tensor<2x3xi64>)
// CHECK: [[F:%.*]] = trt.identity [[V]] : (tensor<2x3xf16>) -> tensor<2x3xf32>
// CHECK: func.return [[F]], [[I]]
// BF16-LABEL: @network
// BF16: trt.identity %x : (tensor<2x3xf32>) -> tensor<2x3xbf16>
func.func @network(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %w = trt.constant {value = dense<0.5> : tensor<3x3xf32>} : tensor<3x3xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32> loc("product")
  %s = trt.softmax %p {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %v, %i = trt.topk max %s {k = 3 : i64, axis = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}

// -----

// Scales of quantization keep their precision, and so does what they make, until a layer reads it.
// CHECK-LABEL: @quantization
// CHECK: [[S:%.*]] = trt.constant {{.*}} : tensor<f32>
// CHECK: [[D:%.*]] = trt.dequantize %q, [[S]] : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
// CHECK: [[H:%.*]] = trt.identity [[D]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: [[R:%.*]] = trt.activation relu [[H]]
// CHECK: trt.quantize [[R]], [[S]] : (tensor<4xf16>, tensor<f32>) -> tensor<4xi8>
func.func @quantization(%q: tensor<4xi8>) -> tensor<4xi8> {
  %s = trt.constant {value = dense<0.1> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %q, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.activation relu %d : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.quantize %r, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}

// -----

// What is not float32 stays; an input that is returned stays too.
// CHECK-LABEL: @other_types
// CHECK-NEXT: trt.elementwise sum %i, %i
// CHECK-NEXT: trt.unary exp %d
// CHECK-NEXT: func.return %x
func.func @other_types(%x: tensor<4xf32>, %i: tensor<4xi32>, %d: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf64>) {
  %a = trt.elementwise sum %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %b = trt.unary exp %d : (tensor<4xf64>) -> tensor<4xf64>
  func.return %x, %a, %b : tensor<4xf32>, tensor<4xi32>, tensor<4xf64>
}

// -----

// For a machine that computes half precision slowly: a network in float16 becomes one in float32.
// F32-LABEL: @half_precision_network
// F32-SAME: -> tensor<4xf16>
// F32-NEXT: [[C:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<1xf32>}
// F32-NEXT: [[X:%.*]] = trt.identity %x : (tensor<4xf16>) -> tensor<4xf32>
// F32-NEXT: [[P:%.*]] = trt.elementwise prod [[X]], [[C]] : {{.*}} -> tensor<4xf32>
// F32-NEXT: [[E:%.*]] = trt.unary exp [[P]] : (tensor<4xf32>) -> tensor<4xf32>
// F32-NEXT: [[Y:%.*]] = trt.identity [[E]] : (tensor<4xf32>) -> tensor<4xf16>
// F32-NEXT: func.return [[Y]]
func.func @half_precision_network(%x: tensor<4xf16>) -> tensor<4xf16> {
  %half = trt.constant {value = dense<0.5> : tensor<1xf16>} : tensor<1xf16>
  %p = trt.elementwise prod %x, %half : (tensor<4xf16>, tensor<1xf16>) -> tensor<4xf16>
  %w = trt.identity %p : (tensor<4xf16>) -> tensor<4xf32>
  %e = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.identity %e : (tensor<4xf32>) -> tensor<4xf16>
  func.return %y : tensor<4xf16>
}
