// RUN: rt-opt %s | rt-opt | filecheck %s
// Scalar computations over an iteration space.

// CHECK-LABEL: func.func @broadcast_and_transpose
func.func @broadcast_and_transpose(%x: tensor<2x3xf32>, %b: tensor<1x2xf32>) {
  // CHECK: %y = fused.pointwise %x, %b {access = [#fused.access<["d1", "d0"]>, #fused.access<["0", "d1"]>]} : (tensor<2x3xf32>, tensor<1x2xf32>) -> tensor<3x2xf32> {
  // CHECK: fused.yield %{{.*}} : f32
  %y = fused.pointwise %x, %b {access = [#fused.access<["d1", "d0"]>, #fused.access<["0", "d1"]>]}
    : (tensor<2x3xf32>, tensor<1x2xf32>) -> tensor<3x2xf32> {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    fused.yield %2 : f32
  }
  func.return
}

// CHECK-LABEL: func.func @several_results_indices_and_sizes
func.func @several_results_indices_and_sizes(%x: tensor<?xi64, #trt.dims<["n"]>>) {
  // CHECK: %y, %z = fused.pointwise %x {access = [#fused.access<["n - 1 - d0"]>]}
  %y, %z = fused.pointwise %x {access = [#fused.access<["n - 1 - d0"]>]}
    : (tensor<?xi64, #trt.dims<["n"]>>) -> (tensor<?xi64, #trt.dims<["n"]>>, tensor<?xi64, #trt.dims<["n"]>>) {
  ^bb0(%0: i64):
    // CHECK: fused.index {dim = 0 : i64} : index
    %i = fused.index {dim = 0 : i64} : index
    // CHECK: fused.size {value = "2*n"} : index
    %n = fused.size {value = "2*n"} : index
    %s = arith.addi %i, %n : index
    %c = arith.index_cast %s : index to i64
    fused.yield %0, %c : i64, i64
  }
  func.return
}

// CHECK-LABEL: func.func @no_operands
func.func @no_operands() {
  // CHECK: fused.pointwise {access = []} : () -> tensor<4xf32> {
  %y = fused.pointwise {access = []} : () -> tensor<4xf32> {
    %c = arith.constant 1.0 : f32
    fused.yield %c : f32
  }
  func.return
}
