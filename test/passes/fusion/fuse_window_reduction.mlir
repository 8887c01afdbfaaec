// RUN: rt-opt %s --split-input-file -p fuse-window-reduction | filecheck %s

// The largest of every two elements, behind a reshape, and the sum of these: the reduction reads each of both.
// CHECK-LABEL: @maximum_and_sum
// CHECK: fused.reduction add(%x, %x) {access = [#fused.access<["d0", "0", "2*d1"]>, #fused.access<["d0", "0", "2*d1 + 1"]>], reduced = #trt.dims<["4"]>}
// CHECK: arith.maximumf
// CHECK-NOT: fused.window
func.func @maximum_and_sum(%x: tensor<3x1x9xf32>) -> tensor<3xf32> {
  %p = fused.window max %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x9xf32>) -> tensor<3x1x4xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %v = fused.view %p : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
  %y = fused.reduction add(%v) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["4"]>} : (tensor<3x4xf32>) -> tensor<3xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<3xf32>
}

// -----

// The mean of the largest of eight elements, of a volume with two channels.
// CHECK-LABEL: @volume
// CHECK: fused.reduction add(%x, %x, %x, %x, %x, %x, %x, %x) {access = [#fused.access<["d0", "d1", "2*d2", "2*d3", "2*d4"]>
// CHECK-NOT: fused.window
func.func @volume(%x: tensor<1x2x4x4x6xf32>) -> tensor<1x2xf32> {
  %p = fused.window max %x {window = array<i64: 2, 2, 2>, stride = array<i64: 2, 2, 2>, dilation = array<i64: 1, 1, 1>, pre_padding = #trt.dims<["0", "0", "0"]>, post_padding = #trt.dims<["0", "0", "0"]>} : (tensor<1x2x4x4x6xf32>) -> tensor<1x2x2x2x3xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2", "d3", "d4"]>], reduced = #trt.dims<["2", "2", "3"]>} : (tensor<1x2x2x2x3xf32>) -> tensor<1x2xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2xf32>
}

// -----

// Windows of 25 elements have a launch of their own.
// CHECK-LABEL: @large
// CHECK: fused.window
func.func @large(%x: tensor<1x2x10x15xf32>) -> tensor<1x2xf32> {
  %p = fused.window max %x {window = array<i64: 5, 5>, stride = array<i64: 5, 5>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x2x10x15xf32>) -> tensor<1x2x2x3xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2", "d3"]>], reduced = #trt.dims<["2", "3"]>} : (tensor<1x2x2x3xf32>) -> tensor<1x2xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<1x2xf32>
}

// -----

// Windows that overlap would be read more than once.
// CHECK-LABEL: @overlapping
// CHECK: fused.window
func.func @overlapping(%x: tensor<3x1x9xf32>) -> tensor<3x1xf32> {
  %p = fused.window max %x {window = array<i64: 3>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x9xf32>) -> tensor<3x1x4xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["4"]>} : (tensor<3x1x4xf32>) -> tensor<3x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<3x1xf32>
}

// -----

// Elements outside of the input do not count.
// CHECK-LABEL: @padded
// CHECK: fused.window
func.func @padded(%x: tensor<3x1x7xf32>) -> tensor<3x1xf32> {
  %p = fused.window max %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["1"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x7xf32>) -> tensor<3x1x4xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["4"]>} : (tensor<3x1x4xf32>) -> tensor<3x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<3x1xf32>
}

// -----

// The pooled tensor is a result.
// CHECK-LABEL: @two_readers
// CHECK: fused.window
func.func @two_readers(%x: tensor<3x1x8xf32>) -> (tensor<3x1x4xf32>, tensor<3x1xf32>) {
  %p = fused.window max %x {window = array<i64: 2>, stride = array<i64: 2>, dilation = array<i64: 1>, pre_padding = #trt.dims<["0"]>, post_padding = #trt.dims<["0"]>} : (tensor<3x1x8xf32>) -> tensor<3x1x4xf32> {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["4"]>} : (tensor<3x1x4xf32>) -> tensor<3x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %p, %y : tensor<3x1x4xf32>, tensor<3x1xf32>
}
