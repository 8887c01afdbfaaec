// RUN: rt-opt %s --split-input-file -p simplify-algebra,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'simplify-algebra{fast-math=none},dce' | filecheck %s --check-prefix=NONE

// CHECK-LABEL: @constants
// CHECK-NEXT: [[C:%.*]] = trt.constant {value = dense<6.000000e+00>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod %x, [[C]]
// CHECK-NEXT: func.return [[Y]]
// NONE-LABEL: @constants
// NONE-COUNT-2: trt.elementwise prod
func.func @constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %b = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %c = trt.elementwise prod %x, %a : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %d = trt.elementwise prod %c, %b : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// Integers wrap around in any order, so that nothing has to be granted.
// CHECK-LABEL: @integers
// CHECK-COUNT-1: trt.elementwise sum
// CHECK-NEXT: func.return
// NONE-LABEL: @integers
// NONE-COUNT-1: trt.elementwise sum
// NONE-NEXT: func.return
func.func @integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  %a = trt.constant {value = dense<2147483647> : tensor<1xi32>} : tensor<1xi32>
  %b = trt.constant {value = dense<3> : tensor<1xi32>} : tensor<1xi32>
  %c = trt.elementwise sum %x, %a : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  %d = trt.elementwise sum %c, %b : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  func.return %d : tensor<4xi32>
}

// -----

// Together the factors would be infinite.
// CHECK-LABEL: @large
// CHECK-COUNT-2: trt.elementwise prod
func.func @large(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.constant {value = dense<1.0e30> : tensor<1xf32>} : tensor<1xf32>
  %b = trt.constant {value = dense<1.0e30> : tensor<1xf32>} : tensor<1xf32>
  %c = trt.elementwise prod %x, %a : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %d = trt.elementwise prod %c, %b : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// The inverse of a power of two is exact, that of 3 is not.
// CHECK-LABEL: @quotients
// CHECK: trt.elementwise prod
// CHECK: trt.elementwise div
// NONE-LABEL: @quotients
// NONE: trt.elementwise prod
// NONE: trt.elementwise div
func.func @quotients(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = trt.constant {value = dense<4.0> : tensor<1xf32>} : tensor<1xf32>
  %b = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %c = trt.elementwise div %x, %a : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %d = trt.elementwise div %y, %b : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %c, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// A normalization in front of a linear layer is in its weights and its shift.
// CHECK-LABEL: @linear
// CHECK: [[P:%.*]] = trt.matrix_multiply %x, {{%.*}}
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise sum [[P]], {{%.*}}
// CHECK-NEXT: func.return [[Y]]
// NONE-LABEL: @linear
// NONE: trt.elementwise sub %x
func.func @linear(%x: tensor<64x2xf32>) -> tensor<64x128xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<2x128xf32>} : tensor<2x128xf32>
  %m = trt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %s = trt.constant {value = dense<[[3.0, 4.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %a = trt.elementwise sub %x, %m : (tensor<64x2xf32>, tensor<1x2xf32>) -> tensor<64x2xf32>
  %b = trt.elementwise prod %a, %s : (tensor<64x2xf32>, tensor<1x2xf32>) -> tensor<64x2xf32>
  %y = trt.matrix_multiply %b, %w : (tensor<64x2xf32>, tensor<2x128xf32>) -> tensor<64x128xf32>
  func.return %y : tensor<64x128xf32>
}

// -----

// Each row has a scale of its own, which no matrix on the right has.
// CHECK-LABEL: @rows
// CHECK: trt.elementwise prod %x
func.func @rows(%x: tensor<2x2xf32>) -> tensor<2x128xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<2x128xf32>} : tensor<2x128xf32>
  %s = trt.constant {value = dense<[[3.0], [4.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %b = trt.elementwise prod %x, %s : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %y = trt.matrix_multiply %b, %w : (tensor<2x2xf32>, tensor<2x128xf32>) -> tensor<2x128xf32>
  func.return %y : tensor<2x128xf32>
}

// -----

// CHECK-LABEL: @kernels
// CHECK: [[Y:%.*]] = trt.convolution %x, {{%.*}} {{.*}}pre_padding = array<i64: 1, 1>
// CHECK-NEXT: func.return [[Y]]
func.func @kernels(%x: tensor<8x2x16x16xf32>) -> tensor<8x4x16x16xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<4x2x3x3xf32>} : tensor<4x2x3x3xf32>
  %s = trt.constant {value = dense<[[[[3.0]], [[4.0]]]]> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %b = trt.elementwise prod %x, %s : (tensor<8x2x16x16xf32>, tensor<1x2x1x1xf32>) -> tensor<8x2x16x16xf32>
  %y = trt.convolution %b, %w {pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<8x2x16x16xf32>, tensor<4x2x3x3xf32>) -> tensor<8x4x16x16xf32>
  func.return %y : tensor<8x4x16x16xf32>
}

// -----

// A sum is scaled once, unless others need what is scaled.
// CHECK-LABEL: @scaled_sum
// CHECK: [[T:%.*]] = trt.reduce sum %x
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[T]], {{%.*}}
// CHECK-NEXT: func.return [[Y]]
func.func @scaled_sum(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %c = trt.constant {value = dense<3.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %a = trt.elementwise prod %x, %c : (tensor<64x64xf32>, tensor<1x1xf32>) -> tensor<64x64xf32>
  %y = trt.reduce sum %a {axes = array<i64: 1>, keep_dims = false} : (tensor<64x64xf32>) -> tensor<64xf32>
  func.return %y : tensor<64xf32>
}

// -----

// In half precision what lies between may be infinite, and stays so.
// CHECK-LABEL: @halves
// CHECK-COUNT-2: trt.elementwise prod
func.func @halves(%x: tensor<4xf16>) -> tensor<4xf16> {
  %a = trt.constant {value = dense<6.0e4> : tensor<1xf16>} : tensor<1xf16>
  %b = trt.constant {value = dense<1.0e-4> : tensor<1xf16>} : tensor<1xf16>
  %c = trt.elementwise prod %x, %a : (tensor<4xf16>, tensor<1xf16>) -> tensor<4xf16>
  %d = trt.elementwise prod %c, %b : (tensor<4xf16>, tensor<1xf16>) -> tensor<4xf16>
  func.return %d : tensor<4xf16>
}
