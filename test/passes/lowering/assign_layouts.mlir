// RUN: rt-opt %s -p 'assign-layouts' --split-input-file | filecheck %s

// A padded convolution reads blocks with a halo and gives blocks; both borders are converted.
// CHECK-LABEL: @padded
func.func @padded(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  // CHECK: [[IN:%.*]] = fused.reformat %x : (tensor<1x32x8x8xf32>) -> tensor<1x2x8x8x16xf32, #trt.dims<["1", "2", "8", "8", "16"], channels = "32", halo = [1, 1]>>
  // CHECK: [[OUT:%.*]] = fused.convolution [[IN]], %k
  // CHECK: fused.reformat [[OUT]] : {{.*}} -> tensor<1x32x8x8xf32>
  %k = trt.constant {value = dense<0.5> : tensor<32x32x3x3xf32>} : tensor<32x32x3x3xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x32x8x8xf32>
}

// -----

// Three channels do not fill a vector: the input stays plain, with a halo.
// CHECK-LABEL: @stem
func.func @stem(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x8x8xf32> {
  // CHECK: fused.reformat %x : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32, #trt.dims<["1", "3", "8", "8"], halo = [1, 1]>>
  %k = trt.constant {value = dense<0.5> : tensor<16x3x3x3xf32>} : tensor<16x3x3x3xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x8x8xf32>
}

// -----

// Without a convolution nothing is worth a conversion.
// CHECK-LABEL: @elementwise
// CHECK-NOT: fused.reformat
func.func @elementwise(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    fused.yield %b : f32
  }
  func.return %y : tensor<1x32x8x8xf32>
}
