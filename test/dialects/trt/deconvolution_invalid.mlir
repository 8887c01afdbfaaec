// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @deconvolution_c1(%x: tensor<1x3x4xi8>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C1: trt.deconvolution needs operands of one element type, but they are i8 and f32}}
  %y = trt.deconvolution %x, %w : (tensor<1x3x4xi8>, tensor<3x5x2xf32>) -> tensor<1x5x5xi8>
  func.return
}

// -----

func.func @deconvolution_c2(%x: tensor<1x3xf32>, %w: tensor<3x4xf32>) {
  // expected-error@+1 {{C2: the kernel of trt.deconvolution has rank 2, expected 3, 4 or 5}}
  %y = trt.deconvolution %x, %w : (tensor<1x3xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @deconvolution_c3(%x: tensor<3x4xf32>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C3: the input of trt.deconvolution has rank 2, its kernel needs at least 3}}
  %y = trt.deconvolution %x, %w : (tensor<3x4xf32>, tensor<3x5x2xf32>) -> tensor<5x5xf32>
  func.return
}

// -----

func.func @deconvolution_c4(%x: tensor<1x3x4xf32>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C4: output_padding [-1] of trt.deconvolution needs 1 entries that are not negative}}
  %y = trt.deconvolution %x, %w {output_padding = array<i64: -1>} : (tensor<1x3x4xf32>, tensor<3x5x2xf32>) -> tensor<1x5x4xf32>
  func.return
}

// -----

func.func @deconvolution_c5(%x: tensor<1x3x4xf32>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C5: 2 groups of trt.deconvolution do not divide its 3 channels}}
  %y = trt.deconvolution %x, %w {num_groups = 2 : i64} : (tensor<1x3x4xf32>, tensor<3x5x2xf32>) -> tensor<1x10x5xf32>
  func.return
}

// -----

func.func @deconvolution_c6(%x: tensor<1x2x4xf32>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C6: channels of trt.deconvolution: expected 3, got 2}}
  %y = trt.deconvolution %x, %w : (tensor<1x2x4xf32>, tensor<3x5x2xf32>) -> tensor<1x5x5xf32>
  func.return
}

// -----

func.func @deconvolution_c7(%x: tensor<1x3x4xf32>, %w: tensor<3x5x2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C7: the bias of trt.deconvolution has shape [3], expected [5]}}
  %y = trt.deconvolution %x, %w, %b : (tensor<1x3x4xf32>, tensor<3x5x2xf32>, tensor<3xf32>) -> tensor<1x5x5xf32>
  func.return
}

// -----

func.func @deconvolution_c8(%x: tensor<1x3x2xf32>, %w: tensor<3x5x2xf32>) {
  // expected-error@+1 {{C8: the pads of trt.deconvolution leave 0 elements of spatial axis 0}}
  %y = trt.deconvolution %x, %w {pre_padding = array<i64: 2>, post_padding = array<i64: 1>} : (tensor<1x3x2xf32>, tensor<3x5x2xf32>) -> tensor<1x5x0xf32>
  func.return
}
