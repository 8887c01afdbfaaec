// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @einsum_c1(%a: tensor<2xf32>, %b: tensor<2xf16>) {
  // expected-error@+1 {{C1: trt.einsum needs operands of one element type, but they are f32 and f16}}
  %y = trt.einsum %a, %b {equation = "i,i"} : (tensor<2xf32>, tensor<2xf16>) -> tensor<f32>
  func.return
}

// -----

func.func @einsum_c2(%a: tensor<2xf32>) {
  // expected-error@+1 {{C2: expected 1 terms for 1 inputs, got 2}}
  %y = trt.einsum %a {equation = "i,i"} : (tensor<2xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @einsum_c3(%a: tensor<2xf32>) {
  // expected-error@+1 {{C3: number of subscripts for input operand 0 is 2, its rank is 1}}
  %y = trt.einsum %a {equation = "ij"} : (tensor<2xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @einsum_c4(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C4: label 'i' of trt.einsum 'i,i' has lengths 2 and 3}}
  %y = trt.einsum %a, %b {equation = "i,i"} : (tensor<2xf32>, tensor<3xf32>) -> tensor<f32>
  func.return
}
