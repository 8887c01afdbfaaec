// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @multiply_add_c1(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error@+1 {{C1: trt.multiply_add needs operands of f32, but they are f32, f64, f32}}
  %y = trt.multiply_add %a, %b, %a : (tensor<4xf32>, tensor<4xf64>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @multiply_add_c2(%a: tensor<4xf32>, %b: tensor<1x4xf32>) {
  // expected-error@+1 {{C2: trt.multiply_add needs equal ranks, but they are 1, 2, 1}}
  %y = trt.multiply_add %a, %b, %a : (tensor<4xf32>, tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @multiply_add_c3(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C3: lengths ['4', '3', '4'] of dimension 0 do not broadcast}}
  %y = trt.multiply_add %a, %b, %a : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}
