// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @scatter_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{C1: trt.scatter needs integer indices, not f32}}
  %y = trt.scatter %x, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @scatter_c2(%x: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{C2: trt.scatter needs operands of one element type, but they are f32 and i64}}
  %y = trt.scatter %x, %i, %i : (tensor<2xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @scatter_c3(%x: tensor<2xf32>, %i: tensor<1x1xi64>, %u: tensor<1x1xf32>) {
  // expected-error@+1 {{C3: trt.scatter needs equal ranks, but they are 1, 2, 2}}
  %y = trt.scatter %x, %i, %u : (tensor<2xf32>, tensor<1x1xi64>, tensor<1x1xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @scatter_c4(%x: tensor<2xf32>, %i: tensor<2xi64>, %u: tensor<1xf32>) {
  // expected-error@+1 {{C4: dimensions of indices and updates of trt.scatter: expected 2, got 1}}
  %y = trt.scatter %x, %i, %u : (tensor<2xf32>, tensor<2xi64>, tensor<1xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @scatter_c5(%x: tensor<2xf32>, %i: tensor<2x2xi64>, %u: tensor<2xf32>) {
  // expected-error@+1 {{C5: the last length of the indices of trt.scatter is 2, expected 1 to 1}}
  %y = trt.scatter %x, %i, %u {mode = #trt<scatter_mode nd>} : (tensor<2xf32>, tensor<2x2xi64>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @scatter_c6(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error@+1 {{C6: dimensions not compatible for ScatterND: updates of trt.scatter: expected 5, got 4}}
  %y = trt.scatter %x, %i, %u {mode = #trt<scatter_mode nd>} : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

func.func @scatter_c7(%x: tensor<2xi1>, %i: tensor<2xi64>) {
  // expected-error@+1 {{C7: trt.scatter cannot combine booleans}}
  %y = trt.scatter %x, %i, %x {reduction = #trt<scatter_reduction add>} : (tensor<2xi1>, tensor<2xi64>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}
