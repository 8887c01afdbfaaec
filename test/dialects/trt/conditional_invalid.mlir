// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @condition_c1(%c: tensor<i32>) {
  // expected-error @+1 {{C1: the condition is a 0-D Bool tensor, got tensor<i32>}}
  trt.condition %c {conditional = @choice} : tensor<i32>
  func.return
}

// -----

func.func @if_output_c1(%x: tensor<4xf32>, %y: tensor<4xi32>) {
  // expected-error @+1 {{C1: the inputs of an IIfConditionalOutputLayer have one type}}
  %z = trt.if_output %x, %y {conditional = @choice} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  func.return
}
