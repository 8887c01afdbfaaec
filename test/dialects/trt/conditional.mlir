// RUN: rt-opt %s | rt-opt | filecheck %s
// The borders of a conditional, tied together by its symbol.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // CHECK: trt.condition %c {conditional = @choice} : tensor<i1>
  trt.condition %c {conditional = @choice} : tensor<i1>
  // CHECK: %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %y = trt.if_output %a, %x {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %a, %x {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
