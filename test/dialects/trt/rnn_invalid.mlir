// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @rnn_c1(%x: tensor<7x2x3xi32>, %w: tensor<4x3xi32>, %r: tensor<4x4xi32>) {
  // expected-error@+1 {{C1: trt.rnn needs floating-point numbers, not i32}}
  %y, %h = trt.rnn simple %x, %w, %r : tensor<7x2x3xi32>, tensor<4x3xi32>, tensor<4x4xi32> -> tensor<7x2x4xi32>, tensor<2x4xi32>
  func.return
}

// -----

func.func @rnn_c2(%x: tensor<7x2x3xf32>, %w: tensor<4x5xf32>, %r: tensor<4x4xf32>) {
  // expected-error@+1 {{C2: weights of trt.rnn: expected 3, got 5}}
  %y, %h = trt.rnn simple %x, %w, %r : tensor<7x2x3xf32>, tensor<4x5xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c3(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %n: tensor<2xi64>) {
  // expected-error@+1 {{C3: the lengths of trt.rnn are int32, not i64}}
  %y, %h = trt.rnn simple %x, %w, %r lengths %n : tensor<2xi64> : tensor<7x2x3xf32>, tensor<4x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c4(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>) {
  // expected-error@+1 {{C4: a simple cell has 1 activations, not 2}}
  %y, %h = trt.rnn simple %x, %w, %r {activations = [#trt.activation_kind relu, #trt.activation_kind tanh]} : tensor<7x2x3xf32>, tensor<4x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c5(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %c: tensor<2x4xf32>) {
  // expected-error@+1 {{C5: a simple cell has no cell state, no peepholes and no input_forget; only lstm has}}
  %y, %h = trt.rnn simple %x, %w, %r cell %c : tensor<2x4xf32> : tensor<7x2x3xf32>, tensor<4x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}
