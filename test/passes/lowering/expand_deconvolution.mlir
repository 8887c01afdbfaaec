// RUN: rt-opt %s -p 'expand-deconvolution' --split-input-file | filecheck %s

// Window and stride 2: each remainder has one tap.
// CHECK-LABEL: @doubling
func.func @doubling(%x: tensor<1x8x5x5xf32>) -> tensor<1x4x10x10xf32> {
  // CHECK: [[A:%.*]] = fused.convolution %x, {{%.*}} {stride = array<i64: 1, 1>,
  // CHECK-SAME: (tensor<1x8x5x5xf32>, tensor<16x8x1x1xf32>) -> tensor<1x16x5x5xf32>
  // CHECK: [[B:%.*]] = fused.view [[A]] : (tensor<1x16x5x5xf32>) -> tensor<1x1x2x2x4x5x5xf32>
  // CHECK: [[C:%.*]] = fused.pointwise [[B]] {access = [#fused.access<["d0", "d1", "d4", "d6", "d2", "d3", "d5"]>]}
  // CHECK: [[D:%.*]] = fused.view [[C]] : {{.*}} -> tensor<1x4x10x10xf32>
  // CHECK: fused.pointwise [[D]] {access = [#fused.access<["d0", "d1", "d2", "d3"]>]}
  %k = trt.constant {value = dense<0.5> : tensor<8x4x2x2xf32>} : tensor<8x4x2x2xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<1x8x5x5xf32>, tensor<8x4x2x2xf32>) -> tensor<1x4x10x10xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x10x10xf32>
}

// -----

// Between taps that lie apart are zeros.
// CHECK-LABEL: @dilated
// CHECK: trt.constant {{.*}} : tensor<4x8x3x3xf32>
// CHECK-NOT: transposed = true
func.func @dilated(%x: tensor<1x8x5x5xf32>) -> tensor<1x4x7x7xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<8x4x2x2xf32>} : tensor<8x4x2x2xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 2, 2>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<1x8x5x5xf32>, tensor<8x4x2x2xf32>) -> tensor<1x4x7x7xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x7x7xf32>
}
