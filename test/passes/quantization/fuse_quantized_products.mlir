// RUN: rt-opt %s --split-input-file -p fuse-quantized-products,dce --print-debuginfo | filecheck %s

// tensorrt-features.md#26.1 and 10.6: one scale per column; the zero point 3 takes 3 * (1 + 2) from the first column, 3
// * (4 - 5) from the second.
// CHECK-LABEL: @columns_with_scales
// CHECK: [[W:%.*]] = trt.constant {value = dense<{{\[\[}}1, 4], [2, -5]]> : tensor<2x2xi8>}
// CHECK: [[P:%.*]] = trt.matrix_multiply %q, [[W]] : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<3x2xi32> loc("product")
// CHECK: [[C:%.*]] = trt.constant {value = dense<{{\[\[}}-9, 3]]> : tensor<1x2xi32>}
// CHECK: [[S:%.*]] = trt.elementwise sum [[P]], [[C]]
// CHECK: [[F:%.*]] = trt.identity [[S]] : (tensor<3x2xi32>) -> tensor<3x2xf32>
// CHECK: [[M:%.*]] = trt.constant {value = dense<{{\[\[}}1.250000e-01, 2.500000e-01]]> : tensor<1x2xf32>}
// CHECK: [[R:%.*]] = trt.elementwise prod [[F]], [[M]]
// CHECK: [[Y:%.*]] = trt.quantize [[R]], {{%.*}} : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xi8> loc(fused["product", "quantize"])
// CHECK-NEXT: func.return [[Y]]
func.func @columns_with_scales(%q: tensor<3x2xi8>) -> tensor<3x2xi8> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %zx = trt.constant {value = dense<3> : tensor<i8>} : tensor<i8>
  %sw = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %sy = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %k = trt.constant {value = dense<[[1, 4], [2, -5]]> : tensor<2x2xi8>} : tensor<2x2xi8>
  %a = trt.dequantize %q, %sx, %zx : (tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %sw {axis = 1 : i64} : (tensor<2x2xi8>, tensor<2xf32>) -> tensor<2x2xf32>
  %p = trt.matrix_multiply %a, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32> loc("product")
  %y = trt.quantize %p, %sy : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xi8> loc("quantize")
  func.return %y : tensor<3x2xi8>
}

// -----

// tensorrt-features.md#10.19: a bias of int32 in units of both scales joins the sum as it is.
// CHECK-LABEL: @with_bias
// CHECK: [[P:%.*]] = trt.matrix_multiply %q, {{%.*}} {rhs_op = #trt<matrix_operation transpose>} : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
// CHECK: [[C:%.*]] = trt.constant {value = dense<{{\[\[}}1000, -7]]> : tensor<1x2xi32>}
// CHECK: trt.elementwise sum [[P]], [[C]]
// CHECK: [[Y:%.*]] = trt.elementwise prod
// CHECK-NEXT: func.return [[Y]]
func.func @with_bias(%q: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %sb = trt.constant {value = dense<[0.25, 0.5]> : tensor<2xf32>} : tensor<2xf32>
  %b = trt.constant {value = dense<[[1000, -7]]> : tensor<1x2xi32>} : tensor<1x2xi32>
  %k = trt.constant {value = dense<[[1, 2], [4, -5]]> : tensor<2x2xi8>} : tensor<2x2xi8>
  %a = trt.dequantize %q, %sx : (tensor<3x2xui8>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %sw {axis = 0 : i64} : (tensor<2x2xi8>, tensor<2xf32>) -> tensor<2x2xf32>
  %c = trt.dequantize %b, %sb {axis = 1 : i64} : (tensor<1x2xi32>, tensor<2xf32>) -> tensor<1x2xf32>
  %p = trt.matrix_multiply %a, %w {rhs_op = #trt<matrix_operation transpose>} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = trt.elementwise sum %p, %c : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: @fully_connected
// CHECK: trt.fully_connected %q, {{%.*}}, {{%.*}} : (tensor<2x1x1x2xui8>, tensor<3x2xi8>, tensor<3xi32>) -> tensor<2x3x1x1xi32>
// CHECK: trt.constant {value = dense<2.500000e-01> : tensor<1x1x1x1xf32>}
func.func @fully_connected(%q: tensor<2x1x1x2xui8>) -> tensor<2x3x1x1xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<128> : tensor<ui8>} : tensor<ui8>
  %k = trt.constant {value = dense<[[1, 2], [4, -5], [6, 7]]> : tensor<3x2xi8>} : tensor<3x2xi8>
  %b = trt.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %a = trt.dequantize %q, %s, %z : (tensor<2x1x1x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x1x1x2xf32>
  %w = trt.dequantize %k, %s : (tensor<3x2xi8>, tensor<f32>) -> tensor<3x2xf32>
  %y = trt.fully_connected %a, %w, %b : (tensor<2x1x1x2xf32>, tensor<3x2xf32>, tensor<3xf32>) -> tensor<2x3x1x1xf32>
  func.return %y : tensor<2x3x1x1xf32>
}

// -----

// Weights that are no constants stay float32 here.
// CHECK-LABEL: @weights_of_the_run
// CHECK: trt.matrix_multiply {{.*}} -> tensor<3x3xf32>
func.func @weights_of_the_run(%q: tensor<3x2xi8>, %k: tensor<2x3xui8>) -> tensor<3x3xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a = trt.dequantize %q, %s : (tensor<3x2xi8>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %s : (tensor<2x3xui8>, tensor<f32>) -> tensor<2x3xf32>
  %y = trt.matrix_multiply %a, %w : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  func.return %y : tensor<3x3xf32>
}

// -----

// Weights of a batch of one are one matrix, whose columns have one addition each: 128 * (4 - 1), 128 * (-2 + 5), 128 * (3 - 7).
// CHECK-LABEL: @batch_of_one
// CHECK: trt.matrix_multiply %q, {{%.*}} : (tensor<1x3x2xui8>, tensor<1x2x3xi8>) -> tensor<1x3x3xi32>
// CHECK: dense<[{{\[\[?}}-384, -384, 512]{{\]\]?}}> : tensor<1x1x3xi32>
func.func @batch_of_one(%q: tensor<1x3x2xui8>) -> tensor<1x3x3xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<128> : tensor<ui8>} : tensor<ui8>
  %k = trt.constant {value = dense<[[[4, -2, 3], [-1, 5, -7]]]> : tensor<1x2x3xi8>} : tensor<1x2x3xi8>
  %a = trt.dequantize %q, %s, %z : (tensor<1x3x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x2xf32>
  %w = trt.dequantize %k, %s : (tensor<1x2x3xi8>, tensor<f32>) -> tensor<1x2x3xf32>
  %y = trt.matrix_multiply %a, %w : (tensor<1x3x2xf32>, tensor<1x2x3xf32>) -> tensor<1x3x3xf32>
  func.return %y : tensor<1x3x3xf32>
}

// -----

// The addition of several matrices would differ between them.
// CHECK-LABEL: @batch_of_two
// CHECK: trt.matrix_multiply {{.*}} -> tensor<2x3x3xf32>
func.func @batch_of_two(%q: tensor<2x3x2xui8>) -> tensor<2x3x3xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<128> : tensor<ui8>} : tensor<ui8>
  %k = trt.constant {value = dense<[[[4, -2, 3], [-1, 5, -7]], [[1, 2, 3], [4, 5, 6]]]> : tensor<2x2x3xi8>} : tensor<2x2x3xi8>
  %a = trt.dequantize %q, %s, %z : (tensor<2x3x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x2xf32>
  %w = trt.dequantize %k, %s : (tensor<2x2x3xi8>, tensor<f32>) -> tensor<2x2x3xf32>
  %y = trt.matrix_multiply %a, %w : (tensor<2x3x2xf32>, tensor<2x2x3xf32>) -> tensor<2x3x3xf32>
  func.return %y : tensor<2x3x3xf32>
}
