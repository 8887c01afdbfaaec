// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @grid_sample_c1(%x: tensor<1x3x4xf32>, %g: tensor<1x6x1xi32>) {
  // expected-error@+1 {{C1: the grid of trt.grid_sample needs floating-point numbers, not i32}}
  %y = trt.grid_sample linear %x, %g : (tensor<1x3x4xf32>, tensor<1x6x1xi32>) -> tensor<1x3x6xf32>
  func.return
}

// -----

func.func @grid_sample_c2(%x: tensor<1x3x4xf32>, %g: tensor<1x6x6x2xf32>) {
  // expected-error@+1 {{C2: trt.grid_sample needs input and grid of one rank, 3 or more, but they are 3 and 4}}
  %y = trt.grid_sample linear %x, %g : (tensor<1x3x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  func.return
}

// -----

func.func @grid_sample_c3(%x: tensor<1x3x4x4xf32>, %g: tensor<1x6x6x3xf32>) {
  // expected-error@+1 {{C3: last length of the grid of trt.grid_sample: expected 2, got 3}}
  %y = trt.grid_sample linear %x, %g : (tensor<1x3x4x4xf32>, tensor<1x6x6x3xf32>) -> tensor<1x3x6x6xf32>
  func.return
}

// -----

func.func @grid_sample_c4(%x: tensor<1x3x4x4xf32>, %g: tensor<2x6x6x2xf32>) {
  // expected-error@+1 {{C4: batch of input and grid of trt.grid_sample: expected 1, got 2}}
  %y = trt.grid_sample linear %x, %g : (tensor<1x3x4x4xf32>, tensor<2x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  func.return
}
