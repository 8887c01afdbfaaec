// RUN: rt-opt %s -p 'expand-deconvolution' --split-input-file | filecheck %s
// RUN: rt-opt %s -p 'expand-deconvolution{lanes=4}' --split-input-file | filecheck %s --check-prefix=APART

// Window and stride 2: each remainder has one tap.
// CHECK-LABEL: @doubling
func.func @doubling(%x: tensor<1x8x5x5xf32>) -> tensor<1x4x10x10xf32> {
  // CHECK: [[A:%.*]] = fused.convolution %x, {{%.*}} {stride = array<i64: 1, 1>,
  // CHECK-SAME: (tensor<1x8x5x5xf32>, tensor<16x8x1x1xf32>) -> tensor<1x16x5x5xf32>
  // CHECK: [[B:%.*]] = fused.view [[A]] : (tensor<1x16x5x5xf32>) -> tensor<1x1x2x2x4x5x5xf32>
  // CHECK: [[C:%.*]] = fused.pointwise [[B]] {access = [#fused.access<["d0", "d1", "d4", "d6", "d2", "d3", "d5"]>]}
  // CHECK: [[D:%.*]] = fused.view [[C]] : {{.*}} -> tensor<1x4x10x10xf32>
  // CHECK: func.return [[D]]
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

// -----

// With stride 1 it is a convolution, which ends with what the deconvolution ends with.
// CHECK-LABEL: @one_remainder
func.func @one_remainder(%x: tensor<1x8x5x5xf32>, %b: tensor<4x5xf32>) -> tensor<1x4x5x5xf32> {
  // CHECK: [[Y:%.*]] = fused.convolution %x, {{%.*}}, %b {{.*}}pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>
  // CHECK-NOT: fused.pointwise
  // CHECK: func.return [[Y]]
  %k = trt.constant {value = dense<0.5> : tensor<8x4x3x3xf32>} : tensor<8x4x3x3xf32>
  %y = fused.convolution %x, %k, %b {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, transposed = true, access = [#fused.access<["d1", "d2"]>]} : (tensor<1x8x5x5xf32>, tensor<8x4x3x3xf32>, tensor<4x5xf32>) -> tensor<1x4x5x5xf32> {
  ^bb0(%acc: f32, %e: f32):
    %r = arith.addf %acc, %e : f32
    fused.yield %r : f32
  }
  func.return %y : tensor<1x4x5x5xf32>
}

// -----

// The first position is the second of its step: the first remainder in front of it is that of the next step.
// CHECK-LABEL: @later_step
func.func @later_step(%x: tensor<1x8x5x5xf32>, %b: tensor<4x10xf32>) -> tensor<1x4x10x10xf32> {
  // CHECK: fused.convolution {{.*}} -> tensor<1x16x5x5xf32>
  // CHECK: fused.pointwise {{.*}}#fused.access<["4*d1 + d2", "2*d3 + d4"]>
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: fused.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: [[Y:%.*]] = fused.view {{.*}} -> tensor<1x4x10x10xf32>
  // CHECK-NEXT: func.return [[Y]]
  %k = trt.constant {value = dense<0.5> : tensor<8x4x3x3xf32>} : tensor<8x4x3x3xf32>
  %y = fused.convolution %x, %k, %b {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 0, 0>, transposed = true, access = [#fused.access<["d1", "d2"]>]} : (tensor<1x8x5x5xf32>, tensor<8x4x3x3xf32>, tensor<4x10xf32>) -> tensor<1x4x10x10xf32> {
  ^bb0(%acc: f32, %e: f32):
    %r = arith.addf %acc, %e : f32
    fused.yield %r : f32
  }
  func.return %y : tensor<1x4x10x10xf32>
}

// -----

// Here each remainder has as many taps as the window has room for, so that the result is cropped.
// CHECK-LABEL: @cropped
func.func @cropped(%x: tensor<1x8x5x5xf32>, %b: tensor<4x10xf32>) -> tensor<1x4x10x10xf32> {
  // CHECK: fused.convolution {{.*}} -> tensor<1x16x6x6xf32>
  // CHECK: [[D:%.*]] = fused.view {{.*}} -> tensor<1x4x12x12xf32>
  // CHECK: fused.pointwise [[D]], %b {access = [#fused.access<["d0", "d1", "d2 + 1", "d3 + 1"]>, #fused.access<["d1", "d2"]>]}
  %k = trt.constant {value = dense<0.5> : tensor<8x4x4x4xf32>} : tensor<8x4x4x4xf32>
  %y = fused.convolution %x, %k, %b {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, transposed = true, access = [#fused.access<["d1", "d2"]>]} : (tensor<1x8x5x5xf32>, tensor<8x4x4x4xf32>, tensor<4x10xf32>) -> tensor<1x4x10x10xf32> {
  ^bb0(%acc: f32, %e: f32):
    %r = arith.addf %acc, %e : f32
    fused.yield %r : f32
  }
  func.return %y : tensor<1x4x10x10xf32>
}

// -----

// Remainders of a window of three: one tap or two along each axis, with what the epilogue reads at their places.
// APART-LABEL: @apart
func.func @apart(%x: tensor<1x8x5x5xf32>, %b: tensor<4x10xf32>) -> tensor<1x4x10x9xf32> {
  // APART: [[A:%.*]] = fused.convolution %x, {{%.*}}, %b {{.*}}#fused.access<["d1", "2*d2"]>{{.*}} tensor<4x8x1x1xf32>, {{.*}} -> tensor<1x4x5x5xf32>
  // APART: [[B:%.*]] = fused.convolution %x, {{%.*}} tensor<4x8x1x2xf32>, {{.*}} -> tensor<1x4x5x4xf32>
  // APART: [[C:%.*]] = fused.convolution %x, {{%.*}}, %b {{.*}}post_padding = array<i64: 1, 0>{{.*}}#fused.access<["d1", "2*d2 + 1"]>{{.*}} tensor<4x8x2x1xf32>, {{.*}} -> tensor<1x4x5x5xf32>
  // APART: [[D:%.*]] = fused.convolution %x, {{%.*}} tensor<4x8x2x2xf32>, {{.*}} -> tensor<1x4x5x4xf32>
  // APART: [[Y:%.*]] = fused.interleave [[A]], [[B]], [[C]], [[D]] {fused.in_place = [true, true, true, true], factors = array<i64: 2, 2>}
  // APART: func.return [[Y]]
  %k = trt.constant {value = dense<0.5> : tensor<8x4x3x3xf32>} : tensor<8x4x3x3xf32>
  %y = fused.convolution %x, %k, %b {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 0, 1>, transposed = true, access = [#fused.access<["d1", "d2"]>]} : (tensor<1x8x5x5xf32>, tensor<8x4x3x3xf32>, tensor<4x10xf32>) -> tensor<1x4x10x9xf32> {
  ^bb0(%acc: f32, %e: f32):
    %r = arith.addf %acc, %e : f32
    fused.yield %r : f32
  }
  func.return %y : tensor<1x4x10x9xf32>
}

// -----

// With fewer channels than lanes, convolutions of single remainders would compute empty lanes.
// APART-LABEL: @few_channels
// APART-NOT: fused.interleave
func.func @few_channels(%x: tensor<1x8x5x5xf32>) -> tensor<1x3x10x10xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<8x3x2x2xf32>} : tensor<8x3x2x2xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<1x8x5x5xf32>, tensor<8x3x2x2xf32>) -> tensor<1x3x10x10xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x3x10x10xf32>
}
