// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @broadcast_c1(%x: tensor<1x2xf32>) {
  // expected-error @+1 {{C1: trt.broadcast has 1 lengths, its input has rank 2}}
  %y = trt.broadcast %x {size = #trt.dims<["2"]>} : (tensor<1x2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @broadcast_c2(%x: tensor<1x2xf32>) {
  // expected-error @+1 {{C2: its inputs have the lengths 2 and 3 where they must be equal}}
  %y = trt.broadcast %x {size = #trt.dims<["1", "3"]>} : (tensor<1x2xf32>) -> tensor<1x3xf32>
  func.return
}
