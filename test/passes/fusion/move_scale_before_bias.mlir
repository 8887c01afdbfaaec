// RUN: rt-opt %s --split-input-file -p move-scale-before-bias,fold-scale-into-convolution,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @scaled
// CHECK: [[B:%.*]] = trt.constant {value = dense<{{\[\[}}5.000000e+00, 1.000000e+01]]>
// CHECK: [[W:%.*]] = trt.constant {value = dense<{{\[\[}}5.000000e-01, 1.000000e+00], [1.500000e+00, 2.000000e+00]]>
// CHECK: [[P:%.*]] = trt.matrix_multiply %x, [[W]] {{.*}} loc(fused["product", "scale"])
// CHECK: [[Y:%.*]] = trt.elementwise sum [[P]], [[B]] {{.*}} loc("bias")
// CHECK: func.return [[Y]]
func.func @scaled(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = trt.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %b = trt.constant {value = dense<[[10.0, 20.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = trt.constant {value = dense<[[0.5]]> : tensor<1x1xf32>} : tensor<1x1xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32> loc("product")
  %s = trt.elementwise sum %b, %p : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32> loc("bias")
  %y = trt.elementwise prod %s, %c : (tensor<3x2xf32>, tensor<1x1xf32>) -> tensor<3x2xf32> loc("scale")
  func.return %y : tensor<3x2xf32>
}

// -----

// The sum is read elsewhere too.
// CHECK-LABEL: @two_readers
// CHECK: trt.elementwise sum
// CHECK-NEXT: trt.elementwise prod
func.func @two_readers(%x: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = trt.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %b = trt.constant {value = dense<[[10.0, 20.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = trt.constant {value = dense<[[0.5]]> : tensor<1x1xf32>} : tensor<1x1xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %s = trt.elementwise sum %p, %b : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %y = trt.elementwise prod %s, %c : (tensor<3x2xf32>, tensor<1x1xf32>) -> tensor<3x2xf32>
  func.return %y, %s : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// Weights that are computed take no scale; more than a number is no scale here.
// CHECK-LABEL: @others
// CHECK: trt.elementwise sum
// CHECK-NEXT: trt.elementwise prod
// CHECK: trt.elementwise sum
// CHECK-NEXT: trt.elementwise prod
func.func @others(%x: tensor<3x2xf32>, %v: tensor<2x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = trt.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %b = trt.constant {value = dense<[[10.0, 20.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = trt.constant {value = dense<[[0.5]]> : tensor<1x1xf32>} : tensor<1x1xf32>
  %d = trt.constant {value = dense<[[0.5], [1.0], [2.0]]> : tensor<3x1xf32>} : tensor<3x1xf32>
  %p = trt.matrix_multiply %x, %v : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %s = trt.elementwise sum %p, %b : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %y = trt.elementwise prod %s, %c : (tensor<3x2xf32>, tensor<1x1xf32>) -> tensor<3x2xf32>
  %q = trt.matrix_multiply %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %t = trt.elementwise sum %q, %b : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %z = trt.elementwise prod %t, %d : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  func.return %y, %z : tensor<3x2xf32>, tensor<3x2xf32>
}
