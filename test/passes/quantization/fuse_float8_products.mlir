// RUN: rt-opt %s --split-input-file -p fuse-float8-products,dce --print-debuginfo | filecheck %s

// One scale on the left, one per column on the right.
// CHECK-LABEL: @columns_with_scales
// CHECK-NOT: trt.dequantize
// CHECK: [[P:%.*]] = trt.matrix_multiply %q, %k : (tensor<3x2xf8E4M3FN>, tensor<2x2xf8E4M3FN>) -> tensor<3x2xf32> loc("product")
// CHECK: [[M:%.*]] = trt.constant {value = dense<{{\[\[}}2.500000e-01, 5.000000e-01]]> : tensor<1x2xf32>}
// CHECK: [[Y:%.*]] = trt.elementwise prod [[P]], [[M]] : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32> loc("product")
// CHECK-NEXT: func.return [[Y]]
func.func @columns_with_scales(%q: tensor<3x2xf8E4M3FN>, %k: tensor<2x2xf8E4M3FN>) -> tensor<3x2xf32> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %a = trt.dequantize %q, %sx : (tensor<3x2xf8E4M3FN>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %sw {axis = 1 : i64} : (tensor<2x2xf8E4M3FN>, tensor<2xf32>) -> tensor<2x2xf32>
  %p = trt.matrix_multiply %a, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32> loc("product")
  func.return %p : tensor<3x2xf32>
}

// -----

// A vector on the right: one scale for all.
// CHECK-LABEL: @vector
// CHECK: trt.matrix_multiply %q, %k {rhs_op = #trt<matrix_operation vector>} : (tensor<3x2xf8E4M3FN>, tensor<2xf8E4M3FN>) -> tensor<3xf32>
// CHECK: trt.constant {value = dense<2.500000e-01> : tensor<1xf32>}
func.func @vector(%q: tensor<3x2xf8E4M3FN>, %k: tensor<2xf8E4M3FN>) -> tensor<3xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a = trt.dequantize %q, %s : (tensor<3x2xf8E4M3FN>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %s : (tensor<2xf8E4M3FN>, tensor<f32>) -> tensor<2xf32>
  %p = trt.matrix_multiply %a, %w {rhs_op = #trt<matrix_operation vector>} : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3xf32>
  func.return %p : tensor<3xf32>
}

// -----

// A scale per row of the right matrix does not leave the sum; nor does one that the run computes stay known.
// CHECK-LABEL: @scales_along_the_depth
// CHECK: trt.matrix_multiply {{.*}} : (tensor<3x2xf32>, tensor<2x2xf32>)
func.func @scales_along_the_depth(%q: tensor<3x2xf8E4M3FN>, %k: tensor<2x2xf8E4M3FN>) -> tensor<3x2xf32> {
  %sx = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %sw = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %a = trt.dequantize %q, %sx : (tensor<3x2xf8E4M3FN>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %sw {axis = 0 : i64} : (tensor<2x2xf8E4M3FN>, tensor<2xf32>) -> tensor<2x2xf32>
  %p = trt.matrix_multiply %a, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  func.return %p : tensor<3x2xf32>
}

// -----

// Bytes are another pass's.
// CHECK-LABEL: @bytes
// CHECK: trt.matrix_multiply {{.*}} : (tensor<3x2xf32>, tensor<2x2xf32>)
func.func @bytes(%q: tensor<3x2xi8>, %k: tensor<2x2xi8>) -> tensor<3x2xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a = trt.dequantize %q, %s : (tensor<3x2xi8>, tensor<f32>) -> tensor<3x2xf32>
  %w = trt.dequantize %k, %s : (tensor<2x2xi8>, tensor<f32>) -> tensor<2x2xf32>
  %p = trt.matrix_multiply %a, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  func.return %p : tensor<3x2xf32>
}
