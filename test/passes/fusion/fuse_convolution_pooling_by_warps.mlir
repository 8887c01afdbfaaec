// RUN: rt-opt %s --split-input-file -p fuse-convolution-pooling{by_warps=true} | filecheck %s
// RUN: rt-opt %s --split-input-file -p "fuse-convolution-pooling{by_warps=true arch=sm_70}" | filecheck %s --check-prefix=OLD

// The matrix units of sm_70 have other shapes.
// OLD-NOT: fused.pooling

// Results of halves, of which not one is in memory.
// CHECK-LABEL: @halves
// CHECK: fused.convolution %x, %w {{.*}}pooling = #fused.pooling<max [4, 4]>{{.*}} -> tensor<8x64x31x31xf16>
// CHECK-NOT: fused.window
func.func @halves(%x: tensor<8x8x128x128xf16>) -> tensor<8x64x31x31xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window max %c {window = array<i64: 4, 4>, stride = array<i64: 4, 4>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64x31x31xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<8x64x31x31xf16>
}

// -----

// Warpgroups are so much faster with many channels that the pooling is worth a launch.
// CHECK-LABEL: @many_channels
// CHECK: fused.window
func.func @many_channels(%x: tensor<8x256x128x128xf16>) -> tensor<8x64x63x63xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x256x3x3xf16>} : tensor<64x256x3x3xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x256x128x128xf16>, tensor<64x256x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64x63x63xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<8x64x63x63xf16>
}

// -----

// All results of a pixel of the input lie in one window.
// CHECK-LABEL: @deconvolution
// CHECK: fused.convolution %x, %w {{.*}}pooling = #fused.pooling<average [2, 2]>{{.*}} -> tensor<8x16x128x128xf16>
func.func @deconvolution(%x: tensor<8x3x128x128xf16>) -> tensor<8x16x128x128xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<3x16x2x2xf16>} : tensor<3x16x2x2xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<8x3x128x128xf16>, tensor<3x16x2x2xf16>) -> tensor<8x16x256x256xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window average %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x16x256x256xf16>) -> tensor<8x16x128x128xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<8x16x128x128xf16>
}

// -----

// CHECK-LABEL: @parts_of_a_pixel
// CHECK: fused.window
func.func @parts_of_a_pixel(%x: tensor<8x3x128x128xf16>) -> tensor<8x16x256x256xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<3x16x4x4xf16>} : tensor<3x16x4x4xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 4, 4>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<8x3x128x128xf16>, tensor<3x16x4x4xf16>) -> tensor<8x16x512x512xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window average %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x16x512x512xf16>) -> tensor<8x16x256x256xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<8x16x256x256xf16>
}

// -----

// The weights of so large a window have no place in a block.
// CHECK-LABEL: @no_tile
// CHECK: fused.window
func.func @no_tile(%x: tensor<8x8x128x128xf16>) -> tensor<8x64x29x29xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x13x13xf16>} : tensor<64x8x13x13xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x13x13xf16>) -> tensor<8x64x116x116xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %y = fused.window max %c {window = array<i64: 4, 4>, stride = array<i64: 4, 4>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x64x116x116xf16>) -> tensor<8x64x29x29xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<8x64x29x29xf16>
}
