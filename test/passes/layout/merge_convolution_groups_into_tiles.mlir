// RUN: rt-opt %s -p 'merge-convolution-groups{lanes=0}' --split-input-file | filecheck %s

// Eight groups of eight channels fill a tile of 64.
// CHECK-LABEL: @tiles
func.func @tiles(%x: tensor<1x128x4x4xf16>) -> tensor<1x128x4x4xf16> {
  // CHECK: [[K:%.*]] = trt.constant {{.*}} : tensor<128x64x1x1xf16>
  // CHECK: fused.convolution %x, [[K]] {{{.*}}groups = 2 : i64, merged_groups = 8 : i64
  %k = trt.constant {value = dense<0.5> : tensor<128x8x1x1xf16>} : tensor<128x8x1x1xf16>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 16 : i64} : (tensor<1x128x4x4xf16>, tensor<128x8x1x1xf16>) -> tensor<1x128x4x4xf16> {
  ^bb0(%acc: f32):
    %z = arith.truncf %acc : f32 to f16
    fused.yield %z : f16
  }
  func.return %y : tensor<1x128x4x4xf16>
}

// -----

// Nine groups of 16: three of them fill most of a tile, and all would take twice as many products.
// CHECK-LABEL: @parts_of_tiles
func.func @parts_of_tiles(%x: tensor<1x144x4x4xf16>) -> tensor<1x144x4x4xf16> {
  // CHECK: groups = 3 : i64, merged_groups = 3 : i64
  %k = trt.constant {value = dense<0.5> : tensor<144x16x1x1xf16>} : tensor<144x16x1x1xf16>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 9 : i64} : (tensor<1x144x4x4xf16>, tensor<144x16x1x1xf16>) -> tensor<1x144x4x4xf16> {
  ^bb0(%acc: f32):
    %z = arith.truncf %acc : f32 to f16
    fused.yield %z : f16
  }
  func.return %y : tensor<1x144x4x4xf16>
}

// -----

// Groups that fill a tile alone stay.
// CHECK-LABEL: @wide
func.func @wide(%x: tensor<1x128x4x4xf16>) -> tensor<1x128x4x4xf16> {
  // CHECK: groups = 2 : i64
  // CHECK-NOT: merged_groups
  %k = trt.constant {value = dense<0.5> : tensor<128x64x1x1xf16>} : tensor<128x64x1x1xf16>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 2 : i64} : (tensor<1x128x4x4xf16>, tensor<128x64x1x1xf16>) -> tensor<1x128x4x4xf16> {
  ^bb0(%acc: f32):
    %z = arith.truncf %acc : f32 to f16
    fused.yield %z : f16
  }
  func.return %y : tensor<1x128x4x4xf16>
}

// -----

// Matrix units do not multiply float32 as it is.
// CHECK-LABEL: @floats
func.func @floats(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  // CHECK: groups = 4 : i64
  // CHECK-NOT: merged_groups
  %k = trt.constant {value = dense<0.5> : tensor<16x4x1x1xf32>} : tensor<16x4x1x1xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, groups = 4 : i64} : (tensor<1x16x4x4xf32>, tensor<16x4x1x1xf32>) -> tensor<1x16x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x4x4xf32>
}
