// A conditional: one of two sums, of which only the one that is needed is computed.
//
//   rt-opt examples/conditional.mlir --run=cpu

func.func @add_or_multiply() {
  %condition = check.input {value = dense<true> : tensor<i1>} : tensor<i1>
  %x = check.input {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %y = check.input {value = dense<[4.0, 5.0, 6.0]> : tensor<3xf32>} : tensor<3xf32>

  trt.condition %condition {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<3xf32>) -> tensor<3xf32>
  %b = trt.if_input %y {conditional = @choice} : (tensor<3xf32>) -> tensor<3xf32>
  %sum = trt.elementwise sum %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %product = trt.elementwise prod %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %result = trt.if_output %sum, %product {conditional = @choice} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>

  %expected = trt.constant {value = dense<[5.0, 7.0, 9.0]> : tensor<3xf32>} : tensor<3xf32>
  check.expect_close %result, %expected : tensor<3xf32>, tensor<3xf32>
  func.return
}
