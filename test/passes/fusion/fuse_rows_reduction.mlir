// RUN: rt-opt %s --split-input-file -p fuse-rows-reduction | filecheck %s

// A softmax over channels, and the largest of its rows with something subtracted: one launch, one element for each row.
// CHECK-LABEL: @softmax_and_maximum
// CHECK-NOT: fused.softmax
// CHECK: fused.normalization %x, %b {access = [#fused.access<["d0", "d2", "d1"]>, #fused.access<["d2"]>], axes = array<i64: 2>, kinds = [#fused<reduction_kind max>, #fused<reduction_kind add>, #fused<reduction_kind max>], reduced = #trt.dims<["9"]>}
// CHECK-NOT: fused.reduction
// CHECK: func.return
func.func @softmax_and_maximum(%x: tensor<4x9x5xf32>, %b: tensor<9xf32>) -> tensor<4x5xf32> {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x9x5xf32>) -> tensor<4x9x5xf32>
  %y = fused.reduction max(%p, %b) {access = [#fused.access<["d0", "d2", "d1"]>, #fused.access<["d2"]>], reduced = #trt.dims<["9"]>} : (tensor<4x9x5xf32>, tensor<9xf32>) -> tensor<4x5xf32> {
  ^bb0(%e: f32, %s: f32):
    %d = arith.subf %e, %s : f32
    fused.yield %d : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<4x5xf32>
}

// -----

// Rows of softmax run along the channels, those of the sum along the pixels.
// CHECK-LABEL: @other_rows
// CHECK: fused.softmax
// CHECK: fused.reduction
func.func @other_rows(%x: tensor<4x9x5xf32>) -> tensor<4x9xf32> {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x9x5xf32>) -> tensor<4x9x5xf32>
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1", "d2"]>], reduced = #trt.dims<["5"]>} : (tensor<4x9x5xf32>) -> tensor<4x9xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<4x9xf32>
}

// -----

// Somebody else reads the shares.
// CHECK-LABEL: @two_readers
// CHECK: fused.softmax
// CHECK: fused.reduction
func.func @two_readers(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4xf32>) {
  %p = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %y = fused.reduction add(%p) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["9"]>} : (tensor<4x9xf32>) -> tensor<4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %p, %y : tensor<4x9xf32>, tensor<4xf32>
}

// -----

// A normalisation by the sum of squares, whose rows are added up: inputs of the sum come behind its own.
// CHECK-LABEL: @normalisation_and_sum
// CHECK: fused.normalization %x, %w {access = [#fused.access<["d0", "d1"]>, #fused.access<["d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>], reduced = #trt.dims<["8"]>}
// CHECK-NOT: fused.reduction
func.func @normalisation_and_sum(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4xf32> {
  %n = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>]} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%e: f32, %t: f32):
    %d = arith.divf %e, %t : f32
    fused.yield %d : f32
  } {
  ^bb0(%e: f32):
    %q = arith.mulf %e, %e : f32
    fused.yield %q : f32
  } {
  ^bb0(%a: f32, %e: f32):
    fused.yield %a : f32
  }
  %y = fused.reduction add(%n, %w) {access = [#fused.access<["d0", "d1"]>, #fused.access<["d1"]>], reduced = #trt.dims<["8"]>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%e: f32, %s: f32):
    %p = arith.mulf %e, %s : f32
    fused.yield %p : f32
  } {
  ^bb0(%t: f32):
    fused.yield %t : f32
  }
  func.return %y : tensor<4xf32>
}
