// RUN: rt-opt %s --split-input-file --verify-diagnostics -p 'verify-legality{phase=fusion}'

func.func @fused(%x: f32) -> f32 {
  %y = arith.negf %x : f32
  func.return %y : f32
}

// -----

func.func @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{'trt.activation' op (layer relu1): is left after phase fusion}}
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32> loc("relu1")
  func.return %y : tensor<2xf32>
}
