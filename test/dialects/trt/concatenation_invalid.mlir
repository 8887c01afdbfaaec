// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @concatenation_c1() {
  // expected-error@+1 {{C1: trt.concatenation needs at least one input}}
  %y = trt.concatenation {axis = 0 : i64} : () -> tensor<0xf32>
  func.return
}

// -----

func.func @concatenation_c2(%a: tensor<2xf32>, %b: tensor<2xi32>) {
  // expected-error@+1 {{C2: trt.concatenation needs operands of one element type, but they are f32 and i32}}
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @concatenation_c3(%a: tensor<2xf32>, %b: tensor<1x2xf32>) {
  // expected-error@+1 {{C3: inputs of trt.concatenation have different ranks: 1, 2}}
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<1x2xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @concatenation_c4(%a: tensor<2xf32>) {
  // expected-error@+1 {{C4: axis 1 of trt.concatenation is not in the range 0 to 0 of its input's axes}}
  %y = trt.concatenation %a, %a {axis = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @concatenation_c5(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{C5: axis 1 of the inputs of trt.concatenation: expected 3, got 4}}
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  func.return
}
