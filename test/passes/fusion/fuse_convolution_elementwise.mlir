// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-pointwise,fuse-convolution-elementwise,verify-dominance --print-debuginfo | filecheck %s

// The convolution moves down to where the residual exists.
// CHECK-LABEL: @residual
// CHECK-NEXT: [[R:%.*]] = fused.softmax %z
// CHECK-NEXT: [[Y:%.*]] = fused.convolution %x, %w, [[R]] {{.*}}access = [#fused.access<["d0", "d1", "d2", "d3"]>]
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: loc(fused["conv", "add", "relu"])
// CHECK-NEXT: func.return [[Y]]
func.func @residual(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %z: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %c = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> loc("conv")
  %r = trt.softmax %z {axis = 1 : i64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> loc("softmax")
  %a = trt.elementwise sum %c, %r : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> loc("add")
  %y = trt.activation relu %a : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> loc("relu")
  func.return %y : tensor<1x4x8x8xf32>
}

// -----

// Of two products the later one takes the sum.
// CHECK-LABEL: @two_products
// CHECK-NEXT: [[A:%.*]] = fused.matmul %x, %w {{.*}}
// CHECK: fused.matmul %z, %w, [[A]]
// CHECK-NOT: fused.pointwise
func.func @two_products(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %z: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %a = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = trt.matrix_multiply %z, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise sum %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @repeated_operand
// CHECK: fused.matmul %x, %w, %r {access = [#fused.access<["d0", "0"]>]}
func.func @repeated_operand(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %a = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise prod %a, %r : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// A transposed residual is read across the rows that the product writes.
// CHECK-LABEL: @transposed_residual
// CHECK: fused.matmul
// CHECK: fused.pointwise
func.func @transposed_residual(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<4x2xf32>) -> tensor<2x4xf32> {
  %a = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %t = trt.shuffle %r {first_transpose = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise sum %a, %t : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// The sum before the residual is an output of the network.
// CHECK-LABEL: @two_readers
// CHECK: fused.matmul
// CHECK: fused.pointwise
func.func @two_readers(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %r: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.elementwise sum %a, %r : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %a, %y : tensor<2x4xf32>, tensor<2x4xf32>
}
