// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-pointwise,fuse-convolution-activation,fuse-row-reductions | filecheck %s

// The mean of the squares scales the row: one launch.
// CHECK-LABEL: @root_mean_square
// CHECK-NOT: fused.reduction
// CHECK: [[Y:%.*]] = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: func.return [[Y]]
func.func @root_mean_square(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = trt.elementwise prod %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = trt.reduce avg %s {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %r = trt.unary sqrt %m : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = trt.elementwise div %x, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// A mean that is read elsewhere too is computed on its own; the chain reads it.
// CHECK-LABEL: @shared_mean
// CHECK: [[M:%.*]] = fused.reduction add(%x)
// CHECK: [[Y:%.*]] = fused.normalization %x, [[M]] {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "0"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind max>]}
// CHECK: func.return [[Y]], [[M]]
func.func @shared_mean(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %m = trt.reduce avg %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %r = trt.reduce max %d {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %y = trt.elementwise div %d, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %y, %m : tensor<4x8xf32>, tensor<4x1xf32>
}

// -----

// Rows along two axes, whatever the pointwise op does with the others.
// CHECK-LABEL: @image
// CHECK: fused.normalization %x {access = [#fused.access<["d1", "d0", "d2", "d3"]>], axes = array<i64: 2, 3>
func.func @image(%x: tensor<2x3x8x8xf32>) -> tensor<3x2x8x8xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 2, 3>, keep_dims = true} : (tensor<2x3x8x8xf32>) -> tensor<2x3x1x1xf32>
  %y = trt.elementwise sub %x, %m : (tensor<2x3x8x8xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x8x8xf32>
  %t = trt.shuffle %y {first_transpose = array<i64: 1, 0, 2, 3>} : (tensor<2x3x8x8xf32>) -> tensor<3x2x8x8xf32>
  func.return %t : tensor<3x2x8x8xf32>
}

// -----

// A few long rows, which separate launches spread over all processors, and rows of other tensors than the result's, stay apart.
// CHECK-LABEL: @apart
// CHECK-NOT: fused.normalization
func.func @apart(%x: tensor<4x2000000xf32>, %z: tensor<4x9xf32>) -> (tensor<4x2000000xf32>, tensor<4x7xf32>) {
  %m = trt.reduce avg %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x2000000xf32>) -> tensor<4x1xf32>
  %y = trt.elementwise sub %x, %m : (tensor<4x2000000xf32>, tensor<4x1xf32>) -> tensor<4x2000000xf32>
  %n = trt.reduce avg %z {axes = array<i64: 1>, keep_dims = true} : (tensor<4x9xf32>) -> tensor<4x1xf32>
  %c = trt.constant {value = dense<1.0> : tensor<4x7xf32>} : tensor<4x7xf32>
  %w = trt.elementwise sub %c, %n : (tensor<4x7xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
  func.return %y, %w : tensor<4x2000000xf32>, tensor<4x7xf32>
}

// -----

// Longer rows are one launch where a block for each takes no longer than launches for each step.
// CHECK-LABEL: @long_rows
// CHECK-NOT: fused.reduction
// CHECK: fused.normalization
func.func @long_rows(%x: tensor<16x30000xf32>) -> tensor<16x30000xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 1>, keep_dims = true} : (tensor<16x30000xf32>) -> tensor<16x1xf32>
  %y = trt.elementwise sub %x, %m : (tensor<16x30000xf32>, tensor<16x1xf32>) -> tensor<16x30000xf32>
  func.return %y : tensor<16x30000xf32>
}

// -----

// A reduction takes in another one of the same rows: the logarithm of a sum of exponentials is one launch, as far as
// it has no other reader.
// CHECK-LABEL: @log_sum_exp
// CHECK-NOT: fused.reduction
// CHECK: [[Y:%.*]] = fused.normalization %x {access = [#fused.access<["d0", "d2"]>], axes = array<i64: 2>, kinds = [#fused<reduction_kind max>, #fused<reduction_kind add>], reduced = #trt.dims<["8"]>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
// CHECK: func.return [[Y]]
func.func @log_sum_exp(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %m = trt.reduce max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %e = trt.unary exp %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = trt.reduce sum %e {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %y = trt.unary log %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  func.return %y : tensor<4x1xf32>
}

// -----

// A maximum that somebody else reads too stays a launch of its own.
// CHECK-LABEL: @shared_maximum
// CHECK: [[M:%.*]] = fused.reduction max(%x)
// CHECK: fused.reduction add(
// CHECK-NOT: fused.normalization
func.func @shared_maximum(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %m = trt.reduce max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %e = trt.unary exp %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = trt.reduce sum %e {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  func.return %s, %m : tensor<4x1xf32>, tensor<4x1xf32>
}

// -----

// The largest of the channels behind an instance normalisation: two launches in the place of three.
// CHECK-LABEL: @other_rows
// CHECK: [[N:%.*]] = fused.normalization %x {access = [#fused.access<["d0", "d1", "d2"]>], axes = array<i64: 2>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>]} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
// CHECK: [[Y:%.*]] = fused.reduction max([[N]]) {access = [#fused.access<["d0", "d2", "d1"]>], reduced = #trt.dims<["3"]>}
// CHECK-NEXT: ^bb0([[E:%.*]]: f32):
// CHECK-NEXT: fused.yield [[E]]
// CHECK: func.return [[Y]]
func.func @other_rows(%x: tensor<2x3x8xf32>) -> tensor<2x8xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %q = trt.elementwise prod %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v = trt.reduce avg %q {axes = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %s = trt.unary sqrt %v : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %n = trt.elementwise div %d, %s : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %y = trt.reduce max %n {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// -----

// Behind one reduction of rows there are two launches either way, and elements in memory would be more to move.
// CHECK-LABEL: @one_reduction
// CHECK-COUNT-2: fused.reduction
// CHECK-NOT: fused.normalization
// CHECK: func.return
func.func @one_reduction(%x: tensor<2x3x8xf32>) -> tensor<2x8xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %d = trt.elementwise sub %x, %m : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %y = trt.reduce max %d {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}
