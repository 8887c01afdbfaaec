// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @fully_connected_c1(%x: tensor<3x1x1xf32>, %w: tensor<2x3xf16>) {
  // expected-error@+1 {{C1: trt.fully_connected needs operands of one element type, but they are f32 and f16}}
  %y = trt.fully_connected %x, %w : (tensor<3x1x1xf32>, tensor<2x3xf16>) -> tensor<2x1x1xf32>
  func.return
}

// -----

func.func @fully_connected_c2(%x: tensor<3x1xf32>, %w: tensor<2x3xf32>) {
  // expected-error@+1 {{C2: the input of trt.fully_connected has rank 2, expected 3 or more}}
  %y = trt.fully_connected %x, %w : (tensor<3x1xf32>, tensor<2x3xf32>) -> tensor<2x1x1xf32>
  func.return
}

// -----

func.func @fully_connected_c3(%x: tensor<3x1x1xf32>, %w: tensor<2x4xf32>) {
  // expected-error@+1 {{C3: row length of the kernel of trt.fully_connected: expected 3, got 4}}
  %y = trt.fully_connected %x, %w : (tensor<3x1x1xf32>, tensor<2x4xf32>) -> tensor<2x1x1xf32>
  func.return
}

// -----

func.func @fully_connected_c4(%x: tensor<3x1x1xf32>, %w: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C4: the bias of trt.fully_connected has shape [3], expected [2]}}
  %y = trt.fully_connected %x, %w, %b : (tensor<3x1x1xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x1x1xf32>
  func.return
}

// -----

func.func @fully_connected_c1_bias_of_int8(%x: tensor<2x3x4x4xi8>, %w: tensor<10x48xi8>, %b: tensor<10xi8>) {
  // expected-error@+1 {{C1: the bias of trt.fully_connected in int8 needs element type i32, not i8}}
  %y = trt.fully_connected %x, %w, %b : (tensor<2x3x4x4xi8>, tensor<10x48xi8>, tensor<10xi8>) -> tensor<2x10x1x1xi32>
  func.return
}
