// RUN: rt-opt %s | rt-opt | filecheck %s
// Ops along one axis.

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<4x9xf32>, %b: tensor<9xf16>) {
  // CHECK: %y = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  // CHECK: %z = fused.softmax %x {axis = 0 : i64, log = true} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %z = fused.softmax %x {axis = 0 : i64, log = true} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  // CHECK: %e = fused.softmax %x, %b {axis = 1 : i64, access = [#fused.access<["d1"]>]} : (tensor<4x9xf32>, tensor<9xf16>) -> tensor<4x9xf16> {
  // CHECK-NEXT: ^bb0(%share: f32, %other: f16):
  %e = fused.softmax %x, %b {axis = 1 : i64, access = [#fused.access<["d1"]>]} : (tensor<4x9xf32>, tensor<9xf16>) -> tensor<4x9xf16> {
  ^bb0(%share: f32, %other: f16):
    fused.yield %other : f16
  }
  func.return
}

// CHECK-LABEL: func.func @cumulative
func.func @cumulative(%x: tensor<4x9xi64>) {
  // CHECK: %y = fused.cumulative sum %x {axis = 1 : i64, reverse = true} : (tensor<4x9xi64>) -> tensor<4x9xi64>
  %y = fused.cumulative sum %x {axis = 1 : i64, reverse = true} : (tensor<4x9xi64>) -> tensor<4x9xi64>
  // CHECK: %z = fused.cumulative prod %x {axis = 0 : i64, exclusive = true} : (tensor<4x9xi64>) -> tensor<4x9xi64>
  %z = fused.cumulative prod %x {axis = 0 : i64, exclusive = true} : (tensor<4x9xi64>) -> tensor<4x9xi64>
  func.return
}

// CHECK-LABEL: func.func @topk
func.func @topk(%x: tensor<4x9xf32>) {
  // CHECK: %v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %v, %i = fused.topk max %x {axis = 1 : i64} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  // CHECK: %w, %j = fused.topk max %x {axis = 1 : i64, normalization = #fused<topk_normalization log_softmax>} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %w, %j = fused.topk max %x {axis = 1 : i64, normalization = #fused<topk_normalization log_softmax>} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  func.return
}
