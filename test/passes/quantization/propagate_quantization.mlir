// RUN: rt-opt %s --split-input-file -p propagate-quantization,dce --print-debuginfo | filecheck %s

// tensorrt-features.md#10.7, 26.4, 26.5: the maximum of integers stands for the maximum of numbers; the layer behind
// reads both late.
// CHECK-LABEL: @dequantized_late
// CHECK: [[P:%.*]] = trt.pooling max %x {window = array<i64: 2, 2>} : (tensor<1x2x4x4xi8>) -> tensor<1x2x3x3xi8> loc("pool")
// CHECK: [[T:%.*]] = trt.shuffle [[P]] {first_transpose = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x3xi8>) -> tensor<1x3x3x2xi8>
// CHECK: [[D:%.*]] = trt.dequantize [[T]], %s : (tensor<1x3x3x2xi8>, tensor<f32>) -> tensor<1x3x3x2xf32> loc("dequantize")
// CHECK: trt.softmax [[D]]
func.func @dequantized_late(%x: tensor<1x2x4x4xi8>) -> tensor<1x3x3x2xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %x, %s : (tensor<1x2x4x4xi8>, tensor<f32>) -> tensor<1x2x4x4xf32> loc("dequantize")
  %p = trt.pooling max %d {window = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> loc("pool")
  %t = trt.shuffle %p {first_transpose = array<i64: 0, 2, 3, 1>} : (tensor<1x2x3x3xf32>) -> tensor<1x3x3x2xf32>
  %y = trt.softmax %t {axis = 3 : i64} : (tensor<1x3x3x2xf32>) -> tensor<1x3x3x2xf32>
  func.return %y : tensor<1x3x3x2xf32>
}

// -----

// CHECK-LABEL: @quantized_early
// CHECK: [[A:%.*]] = trt.unary exp %x
// CHECK: [[B:%.*]] = trt.unary neg %x
// CHECK-DAG: [[QA:%.*]] = trt.quantize [[A]], %s : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xi8>
// CHECK-DAG: [[QB:%.*]] = trt.quantize [[B]], %s : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xi8>
// CHECK: [[C:%.*]] = trt.concatenation [[QA]], [[QB]] {axis = 1 : i64} : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<1x4x4x4xi8>
// CHECK: [[P:%.*]] = trt.pooling max [[C]] {window = array<i64: 2, 2>} : (tensor<1x4x4x4xi8>) -> tensor<1x4x3x3xi8>
// CHECK: func.return [[P]]
func.func @quantized_early(%x: tensor<1x2x4x4xf32>) -> tensor<1x4x3x3xi8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a = trt.unary exp %x : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %b = trt.unary neg %x : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %c = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  %p = trt.pooling max %c {window = array<i64: 2, 2>} : (tensor<1x4x4x4xf32>) -> tensor<1x4x3x3xf32>
  %y = trt.quantize %p, %s : (tensor<1x4x3x3xf32>, tensor<f32>) -> tensor<1x4x3x3xi8>
  func.return %y : tensor<1x4x3x3xi8>
}

// -----

// Tensors with other scales do not meet as integers.
// CHECK-LABEL: @other_scales
// CHECK: trt.concatenation {{.*}} -> tensor<4xf32>
func.func @other_scales(%x: tensor<2xi8>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = trt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %a = trt.dequantize %x, %s : (tensor<2xi8>, tensor<f32>) -> tensor<2xf32>
  %b = trt.dequantize %x, %t : (tensor<2xi8>, tensor<f32>) -> tensor<2xf32>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Zeros around a tensor are its zero point around the integers.
// CHECK-LABEL: @padding
// CHECK: %z = trt.constant
// CHECK: [[Z:%.*]] = trt.constant {value = dense<7> : tensor<ui8>} : tensor<ui8>
// CHECK: [[P:%.*]] = trt.padding %x, [[Z]] {pre = array<i64: 1>, post = array<i64: 1>} : (tensor<2xui8>, tensor<ui8>) -> tensor<4xui8>
// CHECK: trt.dequantize [[P]], %s, %z
func.func @padding(%x: tensor<2xui8>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<7> : tensor<ui8>} : tensor<ui8>
  %d = trt.dequantize %x, %s, %z : (tensor<2xui8>, tensor<f32>, tensor<ui8>) -> tensor<2xf32>
  %y = trt.padding %d {pre = array<i64: 1>, post = array<i64: 1>} : (tensor<2xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// No integer means 0.3 in steps of 0.5; quantised, it is one.
// CHECK-LABEL: @padding_between_integers
// CHECK: trt.padding {{.*}} -> tensor<4xf32>
// CHECK: [[F:%.*]] = trt.quantize %c, %s : (tensor<f32>, tensor<f32>) -> tensor<i8>
// CHECK: trt.padding {{%.*}}, [[F]] {pre = array<i64: 1>, post = array<i64: 1>} : (tensor<2xi8>, tensor<i8>) -> tensor<4xi8>
func.func @padding_between_integers(%x: tensor<2xi8>, %v: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xi8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %c = trt.constant {value = dense<0.3> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %x, %s : (tensor<2xi8>, tensor<f32>) -> tensor<2xf32>
  %y = trt.padding %d, %c {pre = array<i64: 1>, post = array<i64: 1>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %p = trt.padding %v, %c {pre = array<i64: 1>, post = array<i64: 1>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  %q = trt.quantize %p, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %y, %q : tensor<4xf32>, tensor<4xi8>
}

// -----

// Scales of channels follow their axis through transposition and reshape.
// CHECK-LABEL: @scales_of_channels
// CHECK: [[T:%.*]] = trt.shuffle %x {{.*}} : (tensor<3x2xi8>) -> tensor<1x2x3xi8>
// CHECK: trt.dequantize [[T]], %s {axis = 2 : i64} : (tensor<1x2x3xi8>, tensor<3xf32>) -> tensor<1x2x3xf32>
func.func @scales_of_channels(%x: tensor<3x2xi8>) -> tensor<1x2x3xf32> {
  %s = trt.constant {value = dense<[0.5, 0.25, 1.0]> : tensor<3xf32>} : tensor<3xf32>
  %d = trt.dequantize %x, %s {axis = 0 : i64} : (tensor<3x2xi8>, tensor<3xf32>) -> tensor<3x2xf32>
  %y = trt.shuffle %d {first_transpose = array<i64: 1, 0>, reshape_dims = #trt.dims<["1", "2", "3"]>} : (tensor<3x2xf32>) -> tensor<1x2x3xf32>
  func.return %y : tensor<1x2x3xf32>
}

// -----

// A result that something else reads as numbers is quantised where it is.
// CHECK-LABEL: @read_by_others
// CHECK: [[P:%.*]] = trt.pooling max %x {{.*}} -> tensor<1x1x3x3xf32>
// CHECK: trt.quantize [[P]]
func.func @read_by_others(%x: tensor<1x1x4x4xf32>) -> (tensor<1x1x3x3xi8>, tensor<1x1x3x3xf32>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %p = trt.pooling max %x {window = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
  %y = trt.quantize %p, %s : (tensor<1x1x3x3xf32>, tensor<f32>) -> tensor<1x1x3x3xi8>
  func.return %y, %p : tensor<1x1x3x3xi8>, tensor<1x1x3x3xf32>
}

// -----

// Sums are no matter of order: an average pooling stays between its conversions.
// CHECK-LABEL: @average
// CHECK: trt.pooling average {{.*}} -> tensor<1x1x3x3xf32>
func.func @average(%x: tensor<1x1x4x4xi8>) -> tensor<1x1x3x3xi8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %x, %s : (tensor<1x1x4x4xi8>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %p = trt.pooling average %d {window = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
  %y = trt.quantize %p, %s : (tensor<1x1x3x3xf32>, tensor<f32>) -> tensor<1x1x3x3xi8>
  func.return %y : tensor<1x1x3x3xi8>
}

// -----

// Parts that are quantised alike are parts of one quantised tensor, which is what else quantises it.
// CHECK-LABEL: @split
// CHECK-NOT: trt.slice {{.*}}xf32>
// CHECK-COUNT-2: trt.slice {{.*}} -> tensor<2xi8>
// CHECK: func.return
func.func @split(%x: tensor<4xf32>) -> (tensor<2xi8>, tensor<2xi8>, tensor<4xi8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %v = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %a = trt.slice %v {start = #trt.dims<["0"]>, size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = trt.slice %v {start = #trt.dims<["2"]>, size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %p = trt.quantize %a, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xi8>
  %q = trt.quantize %b, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xi8>
  %r = trt.quantize %v, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %p, %q, %r : tensor<2xi8>, tensor<2xi8>, tensor<4xi8>
}
