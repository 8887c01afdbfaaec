// RUN: rt-opt %s | rt-opt | filecheck %s
// Choices by element.

// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%c: tensor<4x1xi1>, %a: tensor<4x3xf32>, %b: tensor<1x1xf32>) {
  // CHECK: %y = trt.select %c, %a, %b : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<1x1xf32>) -> tensor<4x3xf32>
  %y = trt.select %c, %a, %b : (tensor<4x1xi1>, tensor<4x3xf32>, tensor<1x1xf32>) -> tensor<4x3xf32>
  func.return
}
