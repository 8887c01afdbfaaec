// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @unary_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{C1: operation not requires booleans, not f32}}
  %y = trt.unary not %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @unary_c2(%x: tensor<4xi1>) {
  // expected-error@+1 {{C2: operation abs requires numbers, not booleans}}
  %y = trt.unary abs %x : (tensor<4xi1>) -> tensor<4xi1>
  func.return
}

// -----

func.func @unary_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{C3: operation bitwise_not requires integers, not f32}}
  %y = trt.unary bitwise_not %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @unary_c4(%x: tensor<4xi32>) {
  // expected-error@+1 {{C4: operation exp requires floating-point numbers, not i32}}
  %y = trt.unary exp %x : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}
