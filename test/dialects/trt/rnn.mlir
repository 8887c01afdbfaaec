// RUN: rt-opt %s | rt-opt | filecheck %s
// Recurrent layers in one direction.

// CHECK-LABEL: func.func @simple
func.func @simple(%x: tensor<7x2x3xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>) {
  // CHECK: %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  %y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> : tensor<7x2x3xf32>, tensor<4x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @lstm
func.func @lstm(%x: tensor<7x2x3xf32>, %w: tensor<16x3xf32>, %r: tensor<16x4xf32>, %c: tensor<2x4xf32>, %n: tensor<2xi32>, %p: tensor<12xf32>) {
  // CHECK: trt.rnn lstm %x, %r weights %w : tensor<16x3xf32> cell %c : tensor<2x4xf32> lengths %n : tensor<2xi32> peepholes %p : tensor<12xf32> {clip = 3.000000e+00 : f64, reverse = true}
  %y, %h, %d = trt.rnn lstm %x, %r weights %w : tensor<16x3xf32> cell %c : tensor<2x4xf32> lengths %n : tensor<2xi32> peepholes %p : tensor<12xf32> {clip = 3.0 : f64, reverse = true} : tensor<7x2x3xf32>, tensor<16x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @gru
func.func @gru(%x: tensor<7x2x3xf32>, %w: tensor<12x3xf32>, %r: tensor<12x4xf32>, %b: tensor<12xf32>) {
  // CHECK: trt.rnn gru %x, %r weights %w : tensor<12x3xf32> bias %b : tensor<12xf32> {linear_before_reset = true}
  %y, %h = trt.rnn gru %x, %r weights %w : tensor<12x3xf32> bias %b : tensor<12xf32> {linear_before_reset = true} : tensor<7x2x3xf32>, tensor<12x4xf32> -> tensor<7x2x4xf32>, tensor<2x4xf32>
  func.return
}

// The input is projected, the recurrent weights are integers with a scale.
// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<7x2x16xf32>, %r: tensor<16x4xi8>, %d: tensor<16xf32>, %s: tensor<16xf32>) {
  // CHECK: trt.rnn lstm %x, %r recurrent_bias %d : tensor<16xf32> scale %s : tensor<16xf32> : tensor<7x2x16xf32>, tensor<16x4xi8>
  %y, %h, %c = trt.rnn lstm %x, %r recurrent_bias %d : tensor<16xf32> scale %s : tensor<16xf32> : tensor<7x2x16xf32>, tensor<16x4xi8> -> tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  func.return
}
