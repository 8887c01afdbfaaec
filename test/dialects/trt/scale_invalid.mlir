// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @scale_c1(%x: tensor<1x3xf32>, %a: tensor<3xf16>) {
  // expected-error@+1 {{C1: trt.scale needs operands of one element type, but they are f32 and f16}}
  %y = trt.scale %x scale(%a : tensor<3xf16>) : (tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @scale_c2(%x: tensor<3xf32>, %a: tensor<3xf32>) {
  // expected-error@+1 {{C2: channel_axis 1 of trt.scale is not in the range 0 to 0 of its input's axes}}
  %y = trt.scale %x scale(%a : tensor<3xf32>) : (tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @scale_c3(%x: tensor<1x3xf32>, %a: tensor<4xf32>) {
  // expected-error@+1 {{C3: scale of trt.scale: expected 3, got 4}}
  %y = trt.scale %x scale(%a : tensor<4xf32>) : (tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @scale_c3_rank(%x: tensor<1x3xf32>, %a: tensor<3xf32>) {
  // expected-error@+1 {{C3: shift of trt.scale is tensor<3xf32>, mode uniform needs rank 0}}
  %y = trt.scale %x shift(%a : tensor<3xf32>) {mode = #trt<scale_mode uniform>} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return
}
