// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @parametric_relu_c1(%x: tensor<4xf32>, %s: tensor<1xf16>) {
  // expected-error@+1 {{C1: trt.parametric_relu needs operands of one element type, but they are f32 and f16}}
  %y = trt.parametric_relu %x, %s : (tensor<4xf32>, tensor<1xf16>) -> tensor<4xf32>
  func.return
}

// -----

func.func @parametric_relu_c2(%x: tensor<1x4xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{C2: trt.parametric_relu needs equal ranks, but they are 2 and 1}}
  %y = trt.parametric_relu %x, %s : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @parametric_relu_c3(%x: tensor<4xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{C3: lengths ['4', '3'] of dimension 0 do not broadcast}}
  %y = trt.parametric_relu %x, %s : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}
