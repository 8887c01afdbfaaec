// RUN: rt-opt %s -p 'expand-volume-convolution' --split-input-file | filecheck %s

// The three slices below each window are channels; the bias and a residual join at the end.
// CHECK-LABEL: @volume
func.func @volume(%x: tensor<2x8x6x5x5xf32>, %r: tensor<2x16x6x3x3xf32>) -> tensor<2x16x6x3x3xf32> {
  // CHECK: [[K:%.*]] = trt.constant {{.*}} : tensor<16x24x3x3xf32>
  // CHECK: [[P:%.*]] = fused.pad %x {{.*}} -> tensor<2x8x8x5x5xf32>
  // CHECK: [[A:%.*]] = fused.pointwise [[P]] {access = [#fused.access<["d0", "d2", "d1 + d3", "d4", "d5"]>]} {{.*}} -> tensor<2x6x8x3x5x5xf32>
  // CHECK: [[B:%.*]] = fused.view [[A]] {{.*}} -> tensor<12x24x5x5xf32>
  // CHECK: [[C:%.*]] = fused.convolution [[B]], [[K]] {stride = array<i64: 1, 1>{{.*}} -> tensor<12x16x3x3xf32>
  // CHECK: fused.pointwise [[C]], %r {access = [#fused.access<["6*d0 + d2", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d2", "d3", "d4"]>]}
  // CHECK: arith.addf
  %k = trt.constant {value = dense<0.5> : tensor<16x8x3x3x3xf32>} : tensor<16x8x3x3x3xf32>
  %y = fused.convolution %x, %k, %r {stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 1, 0, 0>, post_padding = array<i64: 1, 0, 0>, access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>]} : (tensor<2x8x6x5x5xf32>, tensor<16x8x3x3x3xf32>, tensor<2x16x6x3x3xf32>) -> tensor<2x16x6x3x3xf32> {
  ^bb0(%acc: f32, %e: f32):
    %s = arith.addf %acc, %e : f32
    fused.yield %s : f32
  }
  func.return %y : tensor<2x16x6x3x3xf32>
}

// -----

// A kernel that is computed cannot be packed: nothing is gained.
// CHECK-LABEL: @computed
// CHECK-NOT: fused.view
func.func @computed(%x: tensor<1x8x6x5x5xf32>, %k: tensor<16x8x3x3x3xf32>) -> tensor<1x16x4x3x3xf32> {
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 0, 0, 0>, post_padding = array<i64: 0, 0, 0>} : (tensor<1x8x6x5x5xf32>, tensor<16x8x3x3x3xf32>) -> tensor<1x16x4x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x16x4x3x3xf32>
}

// -----

// Windows of length 1 along the last axis: rows of a slice lie behind each other, 5 elements apart, and so do the rows
// of a residual. The bias has none.
// CHECK-LABEL: @joined
// CHECK-NOT: fused.pointwise
// CHECK-DAG: [[K:%.*]] = trt.constant {{.*}} : tensor<16x8x3x3xf32>
// CHECK-DAG: [[A:%.*]] = fused.view %x : {{.*}} -> tensor<2x8x6x45xf32>
// CHECK-DAG: [[R:%.*]] = fused.view %r : {{.*}} -> tensor<2x16x4x45xf32>
// CHECK: [[B:%.*]] = fused.convolution [[A]], [[K]], [[R]], %b {stride = array<i64: 2, 1>, dilation = array<i64: 1, 10>, pre_padding = array<i64: 1, 10>, post_padding = array<i64: 2, 10>, access = [#fused.access<["d0", "d1", "d2", "d3"]>, #fused.access<["d1"]>]} {{.*}} -> tensor<2x16x4x45xf32>
// CHECK: arith.mulf
// CHECK: fused.view [[B]] : (tensor<2x16x4x45xf32>) -> tensor<2x16x4x9x5xf32>
func.func @joined(%x: tensor<2x8x6x9x5xf32>, %r: tensor<2x16x4x9x5xf32>, %b: tensor<16xf32>) -> tensor<2x16x4x9x5xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<16x8x3x3x1xf32>} : tensor<16x8x3x3x1xf32>
  %y = fused.convolution %x, %k, %r, %b {stride = array<i64: 2, 1, 1>, dilation = array<i64: 1, 2, 1>, pre_padding = array<i64: 1, 2, 0>, post_padding = array<i64: 2, 2, 0>, access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["d1"]>]} : (tensor<2x8x6x9x5xf32>, tensor<16x8x3x3x1xf32>, tensor<2x16x4x9x5xf32>, tensor<16xf32>) -> tensor<2x16x4x9x5xf32> {
  ^bb0(%acc: f32, %e: f32, %f: f32):
    %s = arith.addf %acc, %e : f32
    %t = arith.mulf %s, %f : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x16x4x9x5xf32>
}

// -----

// Windows of one slice: frames are read from rows that are slices, and written there; so is a residual.
// CHECK-LABEL: @frames
// CHECK-DAG: [[K:%.*]] = trt.constant {{.*}} : tensor<16x8x3x3xf32>
// CHECK-DAG: [[X:%.*]] = fused.view %x : {{.*}} -> tensor<1x8x6x25xf32>
// CHECK-DAG: [[R:%.*]] = fused.view %r : {{.*}} -> tensor<1x16x3x9xf32>
// CHECK-DAG: [[A:%.*]] = fused.pointwise [[X]] {access = [#fused.access<["0", "d1", "2*d0", "5*d2 + d3"]>]} : (tensor<1x8x6x25xf32>) -> tensor<3x8x5x5xf32>
// CHECK: [[C:%.*]] = fused.convolution [[A]], [[K]], [[R]], %b {{.*}}access = [#fused.access<["0", "d1", "d0", "3*d2 + d3"]>, #fused.access<["d1"]>]} {{.*}} -> tensor<3x16x3x3xf32>
// CHECK: arith.mulf
// CHECK: [[D:%.*]] = fused.view [[C]] : (tensor<3x16x3x3xf32>) -> tensor<3x16x1x9xf32>
// CHECK: [[E:%.*]] = fused.pointwise [[D]] {access = [#fused.access<["d2", "d1", "d0", "d3"]>]} : {{.*}} -> tensor<1x16x3x9xf32>
// CHECK: fused.view [[E]] : (tensor<1x16x3x9xf32>) -> tensor<1x16x3x3x3xf32>
func.func @frames(%x: tensor<1x8x6x5x5xf32>, %r: tensor<1x16x3x3x3xf32>, %b: tensor<16xf32>) -> tensor<1x16x3x3x3xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<16x8x1x3x3xf32>} : tensor<16x8x1x3x3xf32>
  %y = fused.convolution %x, %k, %r, %b {stride = array<i64: 2, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 0, 0, 0>, post_padding = array<i64: 0, 0, 0>, access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["d1"]>]} : (tensor<1x8x6x5x5xf32>, tensor<16x8x1x3x3xf32>, tensor<1x16x3x3x3xf32>, tensor<16xf32>) -> tensor<1x16x3x3x3xf32> {
  ^bb0(%acc: f32, %e: f32, %f: f32):
    %s = arith.mulf %acc, %e : f32
    %t = arith.addf %s, %f : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<1x16x3x3x3xf32>
}

// -----

// Slices of several volumes are copied, as where windows have more of them.
// CHECK-LABEL: @frames_of_two
// CHECK: fused.pointwise %x {access = [#fused.access<["d0", "d2", "d1 + d3", "d4", "d5"]>]}
func.func @frames_of_two(%x: tensor<2x8x6x5x5xf32>) -> tensor<2x16x6x3x3xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<16x8x1x3x3xf32>} : tensor<16x8x1x3x3xf32>
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pre_padding = array<i64: 0, 0, 0>, post_padding = array<i64: 0, 0, 0>} : (tensor<2x8x6x5x5xf32>, tensor<16x8x1x3x3xf32>) -> tensor<2x16x6x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<2x16x6x3x3xf32>
}
