// RUN: rt-opt %s | rt-opt | filecheck %s
// A product and a sum that are rounded together.

// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%a: tensor<4x3xf32>, %b: tensor<1x1xf32>, %c: tensor<1x3xf32>) {
  // CHECK: %y = trt.multiply_add %a, %b, %c : (tensor<4x3xf32>, tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %y = trt.multiply_add %a, %b, %c : (tensor<4x3xf32>, tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return
}
