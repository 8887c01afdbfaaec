// RUN: rt-opt %s --split-input-file -p fold-scale-into-convolution,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @batch_normalization
// CHECK: [[W:%.*]] = trt.constant {value = dense<{{.*}}2.000000e+00{{.*}}6.000000e+00{{.*}}> : tensor<2x1x1x1xf32>}
// CHECK: [[B:%.*]] = trt.constant {value = dense<{{\[}}1.200000e+01, 3.300000e+01]> : tensor<2xf32>}
// CHECK: trt.convolution %x, [[W]], [[B]]
// CHECK-SAME: loc(fused["conv", "bn"])
// CHECK-NOT: trt.scale
func.func @batch_normalization(%x: tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = trt.constant {value = dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %b = trt.constant {value = dense<[1.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %scale = trt.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : tensor<2xf32>
  %shift = trt.constant {value = dense<[10.0, 30.0]> : tensor<2xf32>} : tensor<2xf32>
  %c = trt.convolution %x, %w, %b : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc("conv")
  %y = trt.scale %c shift(%shift : tensor<2xf32>) scale(%scale : tensor<2xf32>) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("bn")
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// A product and a sum, one after the other; the bias appears.
// CHECK-LABEL: @elementwise
// CHECK: trt.fully_connected %x, {{%.*}}, {{%.*}} :
// CHECK-NOT: trt.elementwise
func.func @elementwise(%x: tensor<2x3x1x1xf32>) -> tensor<2x2x1x1xf32> {
  %w = trt.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %s = trt.constant {value = dense<[[[[2.0]], [[3.0]]]]> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %t = trt.constant {value = dense<1.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %c = trt.fully_connected %x, %w : (tensor<2x3x1x1xf32>, tensor<2x3xf32>) -> tensor<2x2x1x1xf32>
  %p = trt.elementwise prod %s, %c : (tensor<1x2x1x1xf32>, tensor<2x2x1x1xf32>) -> tensor<2x2x1x1xf32>
  %y = trt.elementwise sum %p, %t : (tensor<2x2x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<2x2x1x1xf32>
  func.return %y : tensor<2x2x1x1xf32>
}

// -----

// A matrix product has no bias: it takes the scale and leaves the shift.
// CHECK-LABEL: @matrix_product
// CHECK: trt.constant {value = dense<{{.*}}2.000000e+00, 6.000000e+00{{.*}}> : tensor<1x2xf32>}
// CHECK: trt.matrix_multiply
// CHECK-NOT: trt.elementwise prod
// CHECK: trt.elementwise sum
func.func @matrix_product(%x: tensor<4x1xf32>) -> tensor<4x2xf32> {
  %w = trt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %s = trt.constant {value = dense<[[2.0, 3.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = trt.matrix_multiply %x, %w : (tensor<4x1xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %p = trt.elementwise prod %c, %s : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %y = trt.elementwise sum %p, %s : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// -----

// The scale varies along the width, the convolution has another reader, the kernel is unknown, half precision overflows.
// CHECK-LABEL: @left_alone
// CHECK: trt.elementwise prod
// CHECK: trt.elementwise sum
// CHECK: trt.elementwise sub
// CHECK: trt.elementwise prod
func.func @left_alone(%x: tensor<1x1x1x2xf32>, %v: tensor<1x1x1x1xf32>, %h: tensor<1x1x1x2xf16>)
    -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf16>) {
  %w = trt.constant {value = dense<2.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %s = trt.constant {value = dense<[[[[2.0, 3.0]]]]> : tensor<1x1x1x2xf32>} : tensor<1x1x1x2xf32>
  %a = trt.convolution %x, %w : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %p = trt.elementwise prod %a, %s : (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x1x2xf32>
  %b = trt.convolution %p, %w : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %q = trt.elementwise sum %b, %w : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %c = trt.convolution %x, %v : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %r = trt.elementwise sub %c, %w : (tensor<1x1x1x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x2xf32>
  %large = trt.constant {value = dense<6.0e+04> : tensor<1x1x1x1xf16>} : tensor<1x1x1x1xf16>
  %d = trt.convolution %h, %large : (tensor<1x1x1x2xf16>, tensor<1x1x1x1xf16>) -> tensor<1x1x1x2xf16>
  %t = trt.elementwise prod %d, %large : (tensor<1x1x1x2xf16>, tensor<1x1x1x1xf16>) -> tensor<1x1x1x2xf16>
  func.return %p, %b, %q, %r, %t : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf16>
}
