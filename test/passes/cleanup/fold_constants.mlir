// RUN: rt-opt %s --split-input-file -p fold-constants,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'fold-constants{scales=true}' | filecheck %s --check-prefix=SCALES

// CHECK-LABEL: @chain
// CHECK-NEXT: [[C:%.*]] = trt.constant {value = dense<{{\[}}{{\[}}-3.000000e+00], [-5.000000e+00]]> : tensor<2x1xf32>}
// CHECK-NEXT: func.return [[C]]
func.func @chain() -> tensor<2x1xf32> {
  %a = trt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %two = trt.constant {value = dense<2.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %one = trt.constant {value = dense<1.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %b = trt.elementwise prod %a, %two : (tensor<1x2xf32>, tensor<1x1xf32>) -> tensor<1x2xf32>
  %c = trt.shuffle %b {first_transpose = array<i64: 1, 0>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %d = trt.elementwise sum %c, %one : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %e = trt.unary neg %d : (tensor<2x1xf32>) -> tensor<2x1xf32>
  func.return %e : tensor<2x1xf32>
}

// -----

// CHECK-LABEL: @two_results
// CHECK: trt.constant {value = dense<{{\[}}5.000000e+00, 3.000000e+00]>
// CHECK: trt.constant {value = dense<{{\[}}1, 2]>
func.func @two_results() -> (tensor<2xf32>, tensor<2xi64>) {
  %x = trt.constant {value = dense<[1.0, 5.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %v, %i = trt.topk max %x {k = 2 : i64, axis = 0 : i64} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return %v, %i : tensor<2xf32>, tensor<2xi64>
}

// -----

// CHECK-LABEL: @unknown_operand
// CHECK: trt.elementwise sum
func.func @unknown_operand(%x: tensor<1xf32>) -> tensor<1xf32> {
  %one = trt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %y = trt.elementwise sum %x, %one : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}

// -----

// 64 MiB of zeros are quicker made than read.
// CHECK-LABEL: @result_too_large
// CHECK: trt.fill
func.func @result_too_large() -> tensor<16777216xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %y = trt.fill linspace alpha(%zero : tensor<f32>) {output_dims = #trt.dims<["16777216"]>} : tensor<16777216xf32>
  func.return %y : tensor<16777216xf32>
}

// -----

// A check of constants stays a check.
// CHECK-LABEL: @effect
// CHECK: check.input
// CHECK: check.expect_close
func.func @effect() {
  %x = check.input {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %one = trt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  check.expect_close %x, %one : tensor<1xf32>, tensor<1xf32>
  func.return
}

// -----

// Weights are quantised here; what they are dequantised to is left to layers that compute with integers, and folded
// where one asks for it.
// CHECK-LABEL: @quantized_weights
// CHECK: [[Q:%.*]] = trt.constant {value = dense<[2, -3]> : tensor<2xi8>} : tensor<2xi8>
// CHECK: [[W:%.*]] = trt.dequantize [[Q]]
// CHECK: func.return [[W]]
// SCALES-LABEL: @quantized_weights
// SCALES: [[W:%.*]] = trt.constant {value = dense<[1.000000e+00, -1.500000e+00]> : tensor<2xf32>} : tensor<2xf32>
// SCALES: func.return [[W]]
func.func @quantized_weights() -> tensor<2xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<[1.1, -1.6]> : tensor<2xf32>} : tensor<2xf32>
  %q = trt.quantize %w, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xi8>
  %y = trt.dequantize %q, %s : (tensor<2xi8>, tensor<f32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

