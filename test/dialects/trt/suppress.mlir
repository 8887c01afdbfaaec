// RUN: rt-opt %s | rt-opt | filecheck %s
// Non-maximum suppression.

// CHECK-LABEL: func.func @suppress
func.func @suppress(%b: tensor<2x9x4xf32>, %a: tensor<2x9xi1>, %l: tensor<i64>, %t: tensor<f32>) {
  // CHECK: %y = trt.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i64>, tensor<f32>) -> tensor<2x9xi1>
  %y = trt.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i64>, tensor<f32>) -> tensor<2x9xi1>
  func.return
}
