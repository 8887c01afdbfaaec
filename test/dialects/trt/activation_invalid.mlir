// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @activation_c1(%x: tensor<4xi1>) {
  // expected-error@+1 {{C1: trt.activation needs numbers, but its input is boolean}}
  %y = trt.activation relu %x : (tensor<4xi1>) -> tensor<4xi1>
  func.return
}

// -----

func.func @activation_result_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{the result type should be tensor<4xf32>, but it is tensor<5xf32>}}
  %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}
