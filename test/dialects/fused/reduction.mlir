// RUN: rt-opt %s | rt-opt | filecheck %s
// Reductions and positions of extremes.

// CHECK-LABEL: func.func @mean
func.func @mean(%x: tensor<4x?xf32, #trt.dims<["4", "n"]>>, %b: tensor<4xf32>) {
  // CHECK: %y = fused.reduction add(%x) extras(%b : tensor<4xf32>) {access = [#fused.access<["d0", "d1"]>], extra_access = [#fused.access<["d0"]>], reduced = #trt.dims<["n"]>} : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<4xf32> {
  %y = fused.reduction add(%x) extras(%b : tensor<4xf32>) {access = [#fused.access<["d0", "d1"]>], extra_access = [#fused.access<["d0"]>], reduced = #trt.dims<["n"]>}
    : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<4xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32, %bias: f32):
    %n = fused.size {value = "n"} : index
    %i = arith.index_cast %n : index to i64
    %c = arith.sitofp %i : i64 to f32
    %m = arith.divf %acc, %c : f32
    %s = arith.addf %m, %bias : f32
    fused.yield %s : f32
  }
  func.return
}
