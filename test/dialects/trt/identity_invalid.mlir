// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @identity_result_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{the result type should be tensor<4xi32>, but it is tensor<5xi32>}}
  %y = trt.identity %x : (tensor<4xf32>) -> tensor<5xi32>
  func.return
}
