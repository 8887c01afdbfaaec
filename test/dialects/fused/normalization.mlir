// RUN: rt-opt %s | rt-opt | filecheck %s

// Two reductions of each row, the second of which uses the first, and the elements.
// CHECK-LABEL: func.func @variance
func.func @variance(%x: tensor<4x9xf32>, %e: tensor<4xf32>) {
  // CHECK: %y = fused.normalization %x, %e {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind max>]} : (tensor<4x9xf32>, tensor<4xf32>) -> tensor<4x9xf32> {
  // CHECK-NEXT: ^bb0({{%.*}}: f32, {{%.*}}: f32, {{%.*}}: f32, {{%.*}}: f32):
  %y = fused.normalization %x, %e {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0"]>], axes = array<i64: 1>, kinds = [#fused<reduction_kind add>, #fused<reduction_kind max>]} : (tensor<4x9xf32>, tensor<4xf32>) -> tensor<4x9xf32> {
  ^bb0(%0: f32, %1: f32, %2: f32, %3: f32):
    %4 = arith.subf %0, %2 : f32
    %5 = arith.divf %4, %3 : f32
    fused.yield %5 : f32
  } {
  // CHECK: ^bb0({{%.*}}: f32, {{%.*}}: f32):
  ^bb0(%6: f32, %7: f32):
    fused.yield %6 : f32
  } {
  // CHECK: ^bb0({{%.*}}: f32, {{%.*}}: f32, {{%.*}}: f32):
  ^bb0(%8: f32, %9: f32, %10: f32):
    %11 = arith.addf %8, %10 : f32
    fused.yield %11 : f32
  } {
  ^bb0(%12: f32, %13: f32, %14: f32):
    %15 = arith.subf %12, %14 : f32
    fused.yield %15 : f32
  } {
  ^bb0(%16: f32, %17: f32, %18: f32, %19: f32):
    fused.yield %16 : f32
  }
  func.return
}
