// RUN: rt-opt %s -p 'merge-convolution-groups{lanes=4}' --split-input-file | filecheck %s

// Two groups of two channels fill a block of four.
// CHECK-LABEL: @blocks
func.func @blocks(%x: tensor<1x8x1x5xf32>) -> tensor<1x8x1x5xf32> {
  // CHECK: [[K:%.*]] = trt.constant {{.*}} : tensor<8x4x1x1xf32>
  // CHECK: fused.convolution %x, [[K]] {{{.*}}groups = 2 : i64, merged_groups = 2 : i64
  %k = trt.constant {value = dense<0.5> : tensor<8x2x1x1xf32>} : tensor<8x2x1x1xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 4 : i64} : (tensor<1x8x1x5xf32>, tensor<8x2x1x1xf32>) -> tensor<1x8x1x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x8x1x5xf32>
}

// -----

// Where no number of groups fills blocks, all become one.
// CHECK-LABEL: @all
func.func @all(%x: tensor<1x6x1x5xf32>) -> tensor<1x6x1x5xf32> {
  // CHECK: [[K:%.*]] = trt.constant {value = dense<{{\[\[\[\[}}1.000000e+00{{.*}}> : tensor<6x6x1x1xf32>}
  // CHECK: fused.convolution %x, [[K]]
  // CHECK-NOT: , groups
  // CHECK-SAME: merged_groups = 2 : i64
  %k = trt.constant {value = dense<1.0> : tensor<6x3x1x1xf32>} : tensor<6x3x1x1xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 2 : i64} : (tensor<1x6x1x5xf32>, tensor<6x3x1x1xf32>) -> tensor<1x6x1x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x6x1x5xf32>
}

// -----

// Depthwise, a vector is one of groups.
// CHECK-LABEL: @depthwise
func.func @depthwise(%x: tensor<1x8x1x5xf32>) -> tensor<1x8x1x5xf32> {
  // CHECK: groups = 8 : i64
  %k = trt.constant {value = dense<0.5> : tensor<8x1x1x1xf32>} : tensor<8x1x1x1xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 8 : i64} : (tensor<1x8x1x5xf32>, tensor<8x1x1x1xf32>) -> tensor<1x8x1x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x8x1x5xf32>
}
