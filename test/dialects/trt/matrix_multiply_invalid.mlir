// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @matrix_multiply_c1(%a: tensor<2x2xf32>, %b: tensor<2x2xf64>) {
  // expected-error@+1 {{C1: trt.matrix_multiply needs operands of one element type, but they are f32 and f64}}
  %y = trt.matrix_multiply %a, %b : (tensor<2x2xf32>, tensor<2x2xf64>) -> tensor<2x2xf32>
  func.return
}

// -----

func.func @matrix_multiply_c2(%a: tensor<2xf32>, %b: tensor<2x2xf32>) {
  // expected-error@+1 {{C2: lhs of trt.matrix_multiply has rank 1, expected 2 or more}}
  %y = trt.matrix_multiply %a, %b : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @matrix_multiply_c3(%a: tensor<1x2x2xf32>, %b: tensor<2x2xf32>) {
  // expected-error@+1 {{C3: trt.matrix_multiply needs equal numbers of batch axes, but they are 1 and 0}}
  %y = trt.matrix_multiply %a, %b : (tensor<1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2xf32>
  func.return
}

// -----

func.func @matrix_multiply_c4(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{C4: columns of lhs and rows of rhs of trt.matrix_multiply: expected 3, got 2}}
  %y = trt.matrix_multiply %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @matrix_multiply_c5(%a: tensor<2x3x3xf32>, %b: tensor<4x3x3xf32>) {
  // expected-error@+1 {{C5: lengths ['2', '4'] of dimension 0 do not broadcast}}
  %y = trt.matrix_multiply %a, %b : (tensor<2x3x3xf32>, tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  func.return
}

// -----

func.func @matrix_multiply_c1_bytes(%a: tensor<3x4xi8>, %b: tensor<4x5xui8>) {
  // expected-error@+1 {{C1: trt.matrix_multiply needs operands of one element type, but they are i8 and ui8}}
  %y = trt.matrix_multiply %a, %b : (tensor<3x4xi8>, tensor<4x5xui8>) -> tensor<3x5xi32>
  func.return
}
