// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @non_zero_c1(%x: tensor<f32>) {
  // expected-error@+1 {{C1: trt.non_zero needs a tensor of rank 1 or more}}
  %i = trt.non_zero %x : (tensor<f32>) -> tensor<0x?xi64>
  func.return
}
