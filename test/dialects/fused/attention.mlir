// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --run=reference

// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<2x5x16xf32>, %k: tensor<2x7x16xf32>, %v: tensor<2x7x8xf32>) {
  // CHECK:      %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<2x5x16xf32>, tensor<2x7x16xf32>, tensor<2x7x8xf32>) -> tensor<2x5x8xf32> {
  // CHECK-NEXT: ^bb0(%s: f32):
  // CHECK-NEXT:   fused.yield %s : f32
  // CHECK-NEXT: }
  %y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>, #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["7", "16"]>} : (tensor<2x5x16xf32>, tensor<2x7x16xf32>, tensor<2x7x8xf32>) -> tensor<2x5x8xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return
}

// CHECK-LABEL: func.func @heads_of_one_tensor
func.func @heads_of_one_tensor(%x: tensor<2x5x24xf32>, %m: tensor<2x5xf32>) {
  // CHECK:      %y = fused.attention %x, %x, %x, %m {access = [#fused.access<["d0", "d2", "4*d1 + d4"]>, #fused.access<["d0", "d3", "4*d1 + d4 + 8"]>, #fused.access<["d0", "d3", "4*d1 + d5 + 16"]>, #fused.access<["d0", "d3"]>], reduced = #trt.dims<["5", "4"]>, order = array<i64: 0, 2, 1, 3>, last_key = #fused.access<["d2"]>, zero_masked = true}
  %y = fused.attention %x, %x, %x, %m {access = [#fused.access<["d0", "d2", "4*d1 + d4"]>, #fused.access<["d0", "d3", "4*d1 + d4 + 8"]>, #fused.access<["d0", "d3", "4*d1 + d5 + 16"]>, #fused.access<["d0", "d3"]>], reduced = #trt.dims<["5", "4"]>, order = array<i64: 0, 2, 1, 3>, last_key = #fused.access<["d2"]>, zero_masked = true} : (tensor<2x5x24xf32>, tensor<2x5x24xf32>, tensor<2x5x24xf32>, tensor<2x5xf32>) -> tensor<2x5x2x4xf32> {
  ^bb0(%s: f32, %b: f32):
    %sum = arith.addf %s, %b : f32
    fused.yield %sum : f32
  }
  func.return
}

// Equal scores weigh equally; a key that does not count weighs nothing.
func.func @meaning() {
  %zero = trt.constant {value = dense<0.0> : tensor<2x1xf32>} : tensor<2x1xf32>
  %v = trt.constant {value = dense<[[2.0], [4.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %mean = fused.attention %zero, %zero, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["2", "1"]>} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %w_mean = trt.constant {value = dense<[[3.0], [3.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  check.expect_close %mean, %w_mean : tensor<2x1xf32>, tensor<2x1xf32>
  %causal = fused.attention %zero, %zero, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["2", "1"]>, last_key = #fused.access<["d0"]>} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %w_causal = trt.constant {value = dense<[[2.0], [3.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  check.expect_close %causal, %w_causal : tensor<2x1xf32>, tensor<2x1xf32>
  %past = fused.attention %zero, %zero, %v {access = [#fused.access<["d0", "d2"]>, #fused.access<["d1", "d2"]>, #fused.access<["d1", "d3"]>], reduced = #trt.dims<["2", "1"]>, last_key = #fused.access<["d0 - 1"]>, zero_masked = true} : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  %w_past = trt.constant {value = dense<[[0.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  check.expect_close %past, %w_past : tensor<2x1xf32>, tensor<2x1xf32>
  func.return
}
