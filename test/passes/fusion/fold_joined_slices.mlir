// RUN: rt-opt %s --split-input-file -p fold-joined-slices | filecheck %s

// A slice for each place of a window of three: one access.
// CHECK-LABEL: @unfolded
// CHECK: fused.pointwise %x {access = [#fused.access<["d0", "3*d1 + d2"]>]} : (tensor<2x8xf32>) -> tensor<2x2x3xf32>
// CHECK-NOT: fused.concat
// CHECK: func.return
func.func @unfolded(%x: tensor<2x8xf32>) -> tensor<2x2x3xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "3*d1"]>]} : (tensor<2x8xf32>) -> tensor<2x2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "3*d1 + 1"]>]} : (tensor<2x8xf32>) -> tensor<2x2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %c = fused.pointwise %x {access = [#fused.access<["d0", "3*d1 + 2"]>]} : (tensor<2x8xf32>) -> tensor<2x2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %y = fused.concat %a, %b, %c {axis = 2 : i64} : (tensor<2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x2x3xf32>
  func.return %y : tensor<2x2x3xf32>
}

// -----

// Two halves that follow each other, of another tensor's rows in reverse order.
// CHECK-LABEL: @following
// CHECK: fused.pointwise %x {access = [#fused.access<["-d1 + 3", "d0"]>]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NOT: fused.concat
// CHECK: func.return
func.func @following(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["-d1 + 3", "d0"]>]} : (tensor<4x8xf32>) -> tensor<4x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["-d1 + 3", "d0 + 4"]>]} : (tensor<4x8xf32>) -> tensor<4x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %y = fused.concat %a, %b {axis = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}

// -----

// Even and odd rows, one behind the other: an axis for the two, and a view.
// CHECK-LABEL: @even_and_odd
// CHECK: [[T:%.*]] = fused.pointwise %x {access = [#fused.access<["d0", "d1 + 2*d2"]>]} : (tensor<2x8xf32>) -> tensor<2x2x4xf32>
// CHECK: fused.view [[T]] : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
func.func @even_and_odd(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "2*d1"]>]} : (tensor<2x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "2*d1 + 1"]>]} : (tensor<2x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %y = fused.concat %a, %b {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// -----

// Uneven distances, of which no access is made.
// CHECK-LABEL: @uneven
// CHECK: fused.concat
func.func @uneven(%x: tensor<2x8xf32>) -> tensor<2x3xf32> {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "0"]>]} : (tensor<2x8xf32>) -> tensor<2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "1"]>]} : (tensor<2x8xf32>) -> tensor<2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %c = fused.pointwise %x {access = [#fused.access<["d0", "3"]>]} : (tensor<2x8xf32>) -> tensor<2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %y = fused.concat %a, %b, %c {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// Parts of different lengths, and a part that somebody else reads.
// CHECK-LABEL: @rolled
// CHECK: fused.concat
// CHECK: fused.concat
func.func @rolled(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x2xf32>, tensor<2x1xf32>) {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "d1 + 3"]>]} : (tensor<2x8xf32>) -> tensor<2x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<2x8xf32>) -> tensor<2x3xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %y = fused.concat %a, %b {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xf32>) -> tensor<2x8xf32>
  %c = fused.pointwise %x {access = [#fused.access<["d0", "0"]>]} : (tensor<2x8xf32>) -> tensor<2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %d = fused.pointwise %x {access = [#fused.access<["d0", "1"]>]} : (tensor<2x8xf32>) -> tensor<2x1xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %z = fused.concat %c, %d {axis = 1 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  func.return %y, %z, %c : tensor<2x8xf32>, tensor<2x2xf32>, tensor<2x1xf32>
}
