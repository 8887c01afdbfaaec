// RUN: rt-opt %s --split-input-file -p fuse-convolution-totals | filecheck %s

// What the reduction makes of each result is done before they are added up.
// CHECK-LABEL: @squares
// CHECK: [[C:%.*]] = fused.convolution %x, %w {{.*}}totals = #fused.totals<[8, 32] of [126, 126]>{{.*}} -> tensor<8x64x16x4xf32>
// CHECK: arith.mulf
// CHECK: fused.yield {{.*}} : f32
// CHECK: fused.reduction add([[C]]) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["16", "4"]>}
func.func @squares(%x: tensor<8x8x128x128xf16>) -> tensor<8x64xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %v = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %r = fused.reduction add(%v) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["126", "126"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64xf16> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    %s = arith.mulf %e, %e : f32
    fused.yield %s : f32
  } {
  ^bb0(%a: f32):
    %n = arith.truncf %a : f32 to f16
    fused.yield %n : f16
  }
  func.return %r : tensor<8x64xf16>
}

// -----

// Of the largest of windows, and over all channels as well.
// CHECK-LABEL: @windows
// CHECK: fused.convolution %x, %w {{.*}}totals = #fused.totals<[4, 16] of [63, 63]>, pooling = #fused.pooling<max [2, 2]>{{.*}} -> tensor<8x64x16x4xf32>
// CHECK-NOT: fused.window
// CHECK: reduced = #trt.dims<["64", "16", "4"]>
func.func @windows(%x: tensor<8x8x128x128xf16>) -> tensor<8xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %v = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64x63x63xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %r = fused.reduction add(%v) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["64", "63", "63"]>} : (tensor<8x64x63x63xf16>) -> tensor<8xf16> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    fused.yield %e : f32
  } {
  ^bb0(%a: f32):
    %n = arith.truncf %a : f32 to f16
    fused.yield %n : f16
  }
  func.return %r : tensor<8xf16>
}

// -----

// Rows alone are not all pixels.
// CHECK-LABEL: @rows
// CHECK-NOT: totals
func.func @rows(%x: tensor<8x8x128x128xf16>) -> tensor<8x64x126xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %v = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %r = fused.reduction add(%v) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["126"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64x126xf16> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    fused.yield %e : f32
  } {
  ^bb0(%a: f32):
    %n = arith.truncf %a : f32 to f16
    fused.yield %n : f16
  }
  func.return %r : tensor<8x64x126xf16>
}

// -----

// CHECK-LABEL: @largest
// CHECK-NOT: totals
func.func @largest(%x: tensor<8x8x128x128xf16>) -> tensor<8x64xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %v = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %r = fused.reduction max(%v) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["126", "126"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64xf16> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    fused.yield %e : f32
  } {
  ^bb0(%a: f32):
    %n = arith.truncf %a : f32 to f16
    fused.yield %n : f16
  }
  func.return %r : tensor<8x64xf16>
}

// -----

// CHECK-LABEL: @squares_of_windows
// CHECK-NOT: totals
func.func @squares_of_windows(%x: tensor<8x8x128x128xf16>) -> tensor<8x64xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<8x8x128x128xf16>, tensor<64x8x3x3xf16>) -> tensor<8x64x126x126xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %v = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<8x64x126x126xf16>) -> tensor<8x64x63x63xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  %r = fused.reduction add(%v) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["63", "63"]>} : (tensor<8x64x63x63xf16>) -> tensor<8x64xf16> {
  ^bb0(%a: f16):
    %e = arith.extf %a : f16 to f32
    %s = arith.mulf %e, %e : f32
    fused.yield %s : f32
  } {
  ^bb0(%a: f32):
    %n = arith.truncf %a : f32 to f16
    fused.yield %n : f16
  }
  func.return %r : tensor<8x64xf16>
}
