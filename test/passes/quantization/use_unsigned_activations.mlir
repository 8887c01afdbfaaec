// RUN: rt-opt %s --split-input-file -p use-unsigned-activations,dce --print-debuginfo | filecheck %s

// The pooling in between compares uint8; 128 times 1 + 2 and 4 - 5 goes from the columns, and 3 stays added.
// CHECK-LABEL: @between_scales
// CHECK: [[Z:%.*]] = trt.constant {value = dense<128> : tensor<ui8>} : tensor<ui8>
// CHECK: [[Q:%.*]] = trt.quantize %x, %s, [[Z]] : (tensor<1x1x3x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3x2xui8> loc("quantize")
// CHECK: [[P:%.*]] = trt.pooling max [[Q]] {window = array<i64: 1, 1>} : (tensor<1x1x3x2xui8>) -> tensor<1x1x3x2xui8> loc("pool")
// CHECK: [[M:%.*]] = trt.matrix_multiply [[P]], %w : (tensor<1x1x3x2xui8>, tensor<1x1x2x2xi8>) -> tensor<1x1x3x2xi32> loc("product")
// CHECK: [[C:%.*]] = trt.constant {value = dense<{{\[\[\[\[}}-381, 131]]]]> : tensor<1x1x1x2xi32>}
// CHECK: [[Y:%.*]] = trt.elementwise sum [[M]], [[C]]
// CHECK: [[D:%.*]] = trt.dequantize [[P]], %s, {{%.*}} : (tensor<1x1x3x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3x2xf32>
// CHECK: func.return [[Y]], [[D]]
func.func @between_scales(%x: tensor<1x1x3x2xf32>) -> (tensor<1x1x3x2xi32>, tensor<1x1x3x2xf32>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<[[[[1, 4], [2, -5]]]]> : tensor<1x1x2x2xi8>} : tensor<1x1x2x2xi8>
  %b = trt.constant {value = dense<3> : tensor<1x1x1x2xi32>} : tensor<1x1x1x2xi32>
  %q = trt.quantize %x, %s : (tensor<1x1x3x2xf32>, tensor<f32>) -> tensor<1x1x3x2xi8> loc("quantize")
  %p = trt.pooling max %q {window = array<i64: 1, 1>} : (tensor<1x1x3x2xi8>) -> tensor<1x1x3x2xi8> loc("pool")
  %m = trt.matrix_multiply %p, %w : (tensor<1x1x3x2xi8>, tensor<1x1x2x2xi8>) -> tensor<1x1x3x2xi32> loc("product")
  %y = trt.elementwise sum %m, %b : (tensor<1x1x3x2xi32>, tensor<1x1x1x2xi32>) -> tensor<1x1x3x2xi32>
  %d = trt.dequantize %p, %s : (tensor<1x1x3x2xi8>, tensor<f32>) -> tensor<1x1x3x2xf32>
  func.return %y, %d : tensor<1x1x3x2xi32>, tensor<1x1x3x2xf32>
}

// -----

// Padding holds 128 more too: 7 + 128.
// CHECK-LABEL: @convolution
// CHECK: [[Z:%.*]] = trt.constant {value = dense<135> : tensor<ui8>} : tensor<ui8>
// CHECK: [[Q:%.*]] = trt.quantize %x, %s, [[Z]]
// CHECK: [[B:%.*]] = trt.constant {value = dense<[-246, 394]> : tensor<2xi32>} : tensor<2xi32>
// CHECK: trt.convolution [[Q]], %w, [[B]] {pre_padding = array<i64: 1, 0>, padding_value = 135 : i64} : (tensor<1x1x2x2xui8>, tensor<2x1x1x1xi8>, tensor<2xi32>) -> tensor<1x2x3x2xi32>
func.func @convolution(%x: tensor<1x1x2x2xf32>) -> tensor<1x2x3x2xi32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<7> : tensor<i8>} : tensor<i8>
  %w = trt.constant {value = dense<[[[[2]]], [[[-3]]]]> : tensor<2x1x1x1xi8>} : tensor<2x1x1x1xi8>
  %b = trt.constant {value = dense<10> : tensor<2xi32>} : tensor<2xi32>
  %q = trt.quantize %x, %s, %z : (tensor<1x1x2x2xf32>, tensor<f32>, tensor<i8>) -> tensor<1x1x2x2xi8>
  %y = trt.convolution %q, %w, %b {pre_padding = array<i64: 1, 0>, padding_value = 7 : i64} : (tensor<1x1x2x2xi8>, tensor<2x1x1x1xi8>, tensor<2xi32>) -> tensor<1x2x3x2xi32>
  func.return %y : tensor<1x2x3x2xi32>
}

// -----

// Bytes of the caller are converted, and those that the caller gets are as they were.
// CHECK-LABEL: @inputs_and_outputs
// CHECK: [[U:%.*]] = trt.identity {{.*}} : (tensor<3x2xi32>) -> tensor<3x2xui8>
// CHECK: [[T:%.*]] = trt.shuffle [[U]] {{.*}} -> tensor<2x3xui8>
// CHECK: trt.fully_connected {{.*}} : (tensor<1x1x6xui8>, tensor<1x6xi8>, tensor<1xi32>) -> tensor<1x1x1xi32>
// CHECK: [[O:%.*]] = trt.identity {{.*}} : (tensor<2x3xi32>) -> tensor<2x3xi8>
// CHECK: func.return {{%.*}}, [[O]]
func.func @inputs_and_outputs(%x: tensor<3x2xi8>) -> (tensor<1x1x1xi32>, tensor<2x3xi8>) {
  %w = trt.constant {value = dense<1> : tensor<1x6xi8>} : tensor<1x6xi8>
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0>} : (tensor<3x2xi8>) -> tensor<2x3xi8>
  %f = trt.shuffle %t {reshape_dims = #trt.dims<["1", "1", "6"]>} : (tensor<2x3xi8>) -> tensor<1x1x6xi8>
  %y = trt.fully_connected %f, %w : (tensor<1x1x6xi8>, tensor<1x6xi8>) -> tensor<1x1x1xi32>
  func.return %y, %t : tensor<1x1x1xi32>, tensor<2x3xi8>
}

// -----

// Bytes that no layer multiplies stay signed.
// CHECK-LABEL: @no_product
// CHECK: trt.quantize {{.*}} -> tensor<4xi8>
func.func @no_product(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %q = trt.quantize %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  %y = trt.dequantize %q, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
