// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @suppress_c1(%b: tensor<2x9xf32>, %a: tensor<2x9xi1>, %l: tensor<i64>, %t: tensor<f32>) {
  // expected-error@+1 {{C1: fused.suppress cannot take boxes}}
  %y = fused.suppress %b, %a, %l, %t : (tensor<2x9xf32>, tensor<2x9xi1>, tensor<i64>, tensor<f32>) -> tensor<2x9xi1>
  func.return
}

// -----

func.func @suppress_c2(%b: tensor<2x9x4xf32>, %a: tensor<2x9xi1>, %l: tensor<1xi64>, %t: tensor<f32>) {
  // expected-error@+1 {{C2: fused.suppress needs a limit and a threshold of 0 dimensions}}
  %y = fused.suppress %b, %a, %l, %t : (tensor<2x9x4xf32>, tensor<2x9xi1>, tensor<1xi64>, tensor<f32>) -> tensor<2x9xi1>
  func.return
}
