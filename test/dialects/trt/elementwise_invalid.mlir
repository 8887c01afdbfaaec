// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @elementwise_c1(%a: tensor<2xf32>, %b: tensor<2xi32>) {
  // expected-error@+1 {{C1: operation sum has incompatible input types f32 and i32}}
  %y = trt.elementwise sum %a, %b : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @elementwise_c2(%a: tensor<2xf32>, %b: tensor<1x2xf32>) {
  // expected-error@+1 {{C2: operation sum needs equal ranks, but they are 1 and 2}}
  %y = trt.elementwise sum %a, %b : (tensor<2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return
}

// -----

func.func @elementwise_c3(%a: tensor<2xi32>) {
  // expected-error@+1 {{C3: operation and requires boolean inputs, but they are i32}}
  %y = trt.elementwise and %a, %a : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

func.func @elementwise_c4(%a: tensor<2xf32>) {
  // expected-error@+1 {{C4: operation shift_left requires integers, not f32}}
  %y = trt.elementwise shift_left %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @elementwise_c5(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C5: lengths ['2', '3'] of dimension 0 do not broadcast}}
  %y = trt.elementwise sum %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @elementwise_c6(%a: tensor<2xi1>) {
  // expected-error@+1 {{C6: operation sum requires inputs with activation type, not booleans}}
  %y = trt.elementwise sum %a, %a : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}
