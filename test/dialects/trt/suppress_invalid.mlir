// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @suppress_c1(%b: tensor<2x9x4xf32>, %a: tensor<2x8xi1>, %l: tensor<i64>, %t: tensor<f32>) {
  // expected-error@+1 {{C1: dimension 1 of the boxes of trt.suppress: expected 8, got 9}}
  %y = trt.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x8xi1>, tensor<i64>, tensor<f32>) -> tensor<2x8xi1>
  func.return
}

// -----

func.func @suppress_c2(%b: tensor<2x9x4xf32>, %a: tensor<2x9xi1>, %l: tensor<i32>, %t: tensor<f32>) {
  // expected-error@+1 {{C2: trt.suppress expected a 0-D i64 tensor, got tensor<i32>}}
  %y = trt.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i32>, tensor<f32>) -> tensor<2x9xi1>
  func.return
}

// -----

func.func @suppress_c3(%b: tensor<2x9x4xf32>, %a: tensor<2x9xi1>, %l: tensor<i64>, %t: tensor<1xf32>) {
  // expected-error@+1 {{C3: trt.suppress expected a 0-D f32 tensor, got tensor<1xf32>}}
  %y = trt.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<i64>, tensor<1xf32>) -> tensor<2x9xi1>
  func.return
}
