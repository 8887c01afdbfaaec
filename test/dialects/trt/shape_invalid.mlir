// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @shape_result_type(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{the result type should be tensor<2xi64>, but it is tensor<2xi32>}}
  %s = trt.shape %x : (tensor<2x3xf32>) -> tensor<2xi32>
  func.return
}
