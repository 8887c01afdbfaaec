// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-convolution-activation --print-debuginfo | filecheck %s

// CHECK-LABEL: @relu
// CHECK-NEXT: [[Y:%.*]] = fused.convolution %x, %w
// CHECK-NEXT: ^bb0([[ACC:%.*]]: f32
// CHECK: arith.maximumf [[ACC]]
// CHECK: loc(fused["conv", "relu"])
// CHECK-NEXT: func.return [[Y]]
func.func @relu(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %c = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> loc("conv")
  %y = trt.activation relu %c : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> loc("relu")
  func.return %y : tensor<1x4x8x8xf32>
}

// -----

// Constants per channel become extra operands, a number becomes part of the body.
// CHECK-LABEL: @constants
// CHECK: fused.matmul %x, %w, [[B:%.*]] {access = [#fused.access<["0", "d1"]>]}
// CHECK-NOT: fused.pointwise
func.func @constants(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %b = trt.constant {value = dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>} : tensor<1x4xf32>
  %half = trt.constant {value = dense<0.5> : tensor<1x1xf32>} : tensor<1x1xf32>
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %s = trt.elementwise sum %c, %b : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise prod %s, %half : (tensor<2x4xf32>, tensor<1x1xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @pooling_and_reduction
// CHECK: fused.window average
// CHECK: fused.reduction add
// CHECK-NOT: fused.pointwise
func.func @pooling_and_reduction(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32> {
  %p = trt.pooling average %x {window = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x7x7xf32>
  %a = trt.activation sigmoid %p : (tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32>
  %r = trt.reduce avg %a {axes = array<i64: 2, 3>} : (tensor<1x3x7x7xf32>) -> tensor<1x3x1x1xf32>
  %y = trt.activation relu %r : (tensor<1x3x1x1xf32>) -> tensor<1x3x1x1xf32>
  func.return %y : tensor<1x3x1x1xf32>
}

// -----

// Half precision: the activation sees the accumulator before it is rounded.
// CHECK-LABEL: @half_precision
// CHECK: ^bb0([[ACC:%.*]]: f32
// CHECK: math.tanh [[ACC]] : f32
// CHECK: arith.truncf
// CHECK-NOT: arith.extf
func.func @half_precision(%x: tensor<2x3xf16>, %w: tensor<3x4xf16>) -> tensor<2x4xf16> {
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  %y = trt.activation tanh %c : (tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %y : tensor<2x4xf16>
}

// -----

// The result has another reader.
// CHECK-LABEL: @two_readers
// CHECK: fused.matmul
// CHECK: fused.pointwise
func.func @two_readers(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.activation tanh %c : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %c, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A transposed read is no epilogue.
// CHECK-LABEL: @transposed
// CHECK: fused.matmul
// CHECK: fused.pointwise
func.func @transposed(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %y = trt.shuffle %c {first_transpose = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// -----

// A repeated result has more elements than were accumulated.
// CHECK-LABEL: @repeated
// CHECK: fused.reduction
// CHECK: fused.pointwise
func.func @repeated(%x: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %ones = trt.constant {value = dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>} : tensor<1x3xf32>
  %c = trt.reduce sum %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %y = trt.elementwise sum %c, %ones : (tensor<2x1xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// A residual is the business of fuse-convolution-elementwise.
// CHECK-LABEL: @residual
// CHECK: fused.matmul
// CHECK: fused.pointwise
func.func @residual(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise sum %c, %r : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
