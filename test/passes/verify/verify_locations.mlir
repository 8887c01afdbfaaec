// RUN: rt-opt %s --split-input-file --verify-diagnostics -p verify-locations

func.func @named(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = trt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
  %y = trt.elementwise sum %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc(fused["add1", "add2"])
  func.return %y : tensor<2xf32>
}

// -----

func.func @nameless(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has lost the name of its layer}}
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
