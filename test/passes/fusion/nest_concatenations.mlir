// RUN: rt-opt %s -p nest-concatenations,eliminate-concatenation --split-input-file | filecheck %s

// Each layer reads all tensors so far: each new one has one reader, and is written in place.
// CHECK-LABEL: @dense
// CHECK: [[A:%.*]] = fused.concat %x, %y {{.*}} -> tensor<5x5x4xf32>
// CHECK: [[S:%.*]] = fused.pointwise [[A]]
// CHECK: [[B:%.*]] = fused.concat [[A]], [[S]] {fused.in_place = [false, true], axis = 1 : i64} : (tensor<5x5x4xf32>, tensor<5x5x4xf32>) -> tensor<5x10x4xf32>
// CHECK: [[T:%.*]] = fused.pointwise [[B]]
// CHECK: [[C:%.*]] = fused.concat [[B]], [[T]] {fused.in_place = [false, true], axis = 1 : i64} : (tensor<5x10x4xf32>, tensor<5x10x4xf32>) -> tensor<5x20x4xf32>
// CHECK: return [[B]], [[C]]
func.func @dense(%x: tensor<5x2x4xf32>, %y: tensor<5x3x4xf32>) -> (tensor<5x10x4xf32>, tensor<5x20x4xf32>) {
  %a = fused.concat %x, %y {axis = 1 : i64} : (tensor<5x2x4xf32>, tensor<5x3x4xf32>) -> tensor<5x5x4xf32>
  %s = fused.pointwise %a {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<5x5x4xf32>) -> tensor<5x5x4xf32> {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    fused.yield %n : f32
  }
  %b = fused.concat %x, %y, %s {axis = 1 : i64} : (tensor<5x2x4xf32>, tensor<5x3x4xf32>, tensor<5x5x4xf32>) -> tensor<5x10x4xf32>
  %t = fused.pointwise %b {access = [#fused.access<["d0", "d1", "d2"]>]} : (tensor<5x10x4xf32>) -> tensor<5x10x4xf32> {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    fused.yield %n : f32
  }
  %c = fused.concat %x, %y, %s, %t {axis = 1 : i64} : (tensor<5x2x4xf32>, tensor<5x3x4xf32>, tensor<5x5x4xf32>, tensor<5x10x4xf32>) -> tensor<5x20x4xf32>
  func.return %b, %c : tensor<5x10x4xf32>, tensor<5x20x4xf32>
}

// -----

// Another axis, another order, and the same tensors behind others are other concatenations; so is one that comes later.
// CHECK-LABEL: @others
// CHECK: [[LATER:%.*]] = fused.concat %x, %y, %x {
// CHECK: fused.concat %x, %y {
// CHECK: fused.concat %x, %y, %x, %y {axis = 1
// CHECK: fused.concat %y, %x, %y {
// CHECK: fused.concat %y, %y, %x {
// CHECK-NOT: fused.concat [[LATER]]
func.func @others(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<6x2xf32>, tensor<4x2xf32>, tensor<2x8xf32>, tensor<6x2xf32>, tensor<6x2xf32>) {
  %l = fused.concat %x, %y, %x {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  %a = fused.concat %x, %y {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %b = fused.concat %x, %y, %x, %y {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x8xf32>
  %c = fused.concat %y, %x, %y {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  %d = fused.concat %y, %y, %x {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  func.return %l, %a, %b, %c, %d : tensor<6x2xf32>, tensor<4x2xf32>, tensor<2x8xf32>, tensor<6x2xf32>, tensor<6x2xf32>
}
