// RUN: rt-opt %s | rt-opt | filecheck %s
// Sliding windows over the axes from `axis` on; pads may be symbolic.

// CHECK-LABEL: func.func @max_pool
func.func @max_pool(%x: tensor<?x2x7x6xf32, #trt.dims<["n", "2", "7", "6"]>>) {
  // CHECK: %y = fused.window max %x {window = array<i64: 3, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["1", "0"]>, post_padding = #trt.dims<["1", "0"]>} : (tensor<?x2x7x6xf32, #trt.dims<["n", "2", "7", "6"]>>) -> tensor<?x2x4x3xf32, #trt.dims<["n", "2", "4", "3"]>> {
  %y = fused.window max %x {window = array<i64: 3, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["1", "0"]>, post_padding = #trt.dims<["1", "0"]>}
    : (tensor<?x2x7x6xf32, #trt.dims<["n", "2", "7", "6"]>>) -> tensor<?x2x4x3xf32, #trt.dims<["n", "2", "4", "3"]>> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// CHECK-LABEL: func.func @sum_over_channels
func.func @sum_over_channels(%x: tensor<1x?x4xf32, #trt.dims<["1", "c", "4"]>>, %s: tensor<4xf32>) {
  // CHECK: %y = fused.window add %x, %s {axis = 1 : i64, window = array<i64: 5>, stride = array<i64: 1>, dilation = array<i64: 1>, pre_padding = #trt.dims<["c % 2"]>, post_padding = #trt.dims<["2"]>, access = [#fused.access<["d2"]>]}
  %y = fused.window add %x, %s {axis = 1 : i64, window = array<i64: 5>, stride = array<i64: 1>, dilation = array<i64: 1>, pre_padding = #trt.dims<["c % 2"]>, post_padding = #trt.dims<["2"]>, access = [#fused.access<["d2"]>]}
    : (tensor<1x?x4xf32, #trt.dims<["1", "c", "4"]>>, tensor<4xf32>) -> tensor<1x?x4xf32, #trt.dims<["1", "c", "4"]>> {
  ^bb0(%acc: f32, %e: f32):
    %v = arith.mulf %acc, %e : f32
    fused.yield %v : f32
  }
  func.return
}
