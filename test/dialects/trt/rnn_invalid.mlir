// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @rnn_c1(%x: tensor<7x2x3xi32>, %w: tensor<4x3xi32>, %r: tensor<4x4xi32>) {
  // expected-error@+1 {{C1: trt.rnn needs floating-point numbers, not i32}}
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xi32> : tensor<7x2x3xi32>, tensor<4x4xi32> -> tensor<7x2x4xi32>, tensor<2x4xi32>
  func.return
}

// -----

func.func @rnn_c2(%x: tensor<7x2x3xf32>, %w: tensor<4x5xf32>, %r: tensor<4x4xf32>) {
  // expected-error@+1 {{C2: weights of trt.rnn: expected 3, got 5}}
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x5xf32> : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c3(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %n: tensor<2xi64>) {
  // expected-error@+1 {{C3: the lengths of trt.rnn are int32, not i64}}
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> lengths %n : tensor<2xi64> : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c4(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>) {
  // expected-error@+1 {{C4: a simple cell has 1 activations, not 2}}
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> {activations = [#trt.activation_kind relu, #trt.activation_kind tanh]} : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c5(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %c: tensor<2x4xf32>) {
  // expected-error@+1 {{C5: a simple cell has no cell state, no peepholes and no input_forget; only lstm has}}
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> cell %c : tensor<2x4xf32> : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c1_integers(%x: tensor<7x2x16xf32>, %r: tensor<16x4xi32>, %s: tensor<16xf32>) {
  // expected-error@+1 {{C1: recurrent weights with a scale are i8 or i16, not i32}}
  %y, %h, %c = trt.rnn lstm %x, %r scale %s : tensor<16xf32> : tensor<7x2x16xf32>, tensor<16x4xi32> -> tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c2_projected(%x: tensor<7x2x3xf32>, %r: tensor<16x4xf32>) {
  // expected-error@+1 {{C2: length of the projected input of trt.rnn: expected 16, got 3}}
  %y, %h, %c = trt.rnn lstm %x, %r : tensor<7x2x3xf32>, tensor<16x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  func.return
}

// -----

func.func @rnn_c6(%x: tensor<7x2x4xf32>, %r: tensor<4x4xi8>, %s: tensor<4xf32>) {
  // expected-error@+1 {{C6: a simple cell has no scale; only lstm has}}
  %y, %h = trt.rnn simple %x, %r scale %s : tensor<4xf32> : tensor<7x2x4xf32>, tensor<4x4xi8> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}
