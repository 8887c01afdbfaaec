// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @gather_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{C1: trt.gather needs integer indices, not f32}}
  %y = trt.gather %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @gather_c2(%x: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{C2: axis 1 of trt.gather is not in the range 0 to 0 of its input's axes}}
  %y = trt.gather %x, %i {axis = 1 : i64} : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @gather_c3(%x: tensor<2x3xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{C3: num_elementwise_dims of trt.gather must be 0 to 0 in mode default, but it is 1}}
  %y = trt.gather %x, %i {num_elementwise_dims = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @gather_c4(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>) {
  // expected-error@+1 {{C4: elementwise dimensions of trt.gather: expected 2, got 4}}
  %y = trt.gather %x, %i {axis = 1 : i64, num_elementwise_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<2x1xf32>
  func.return
}

// -----

func.func @gather_c5(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error@+1 {{C5: trt.gather in mode element needs equal ranks, but they are 2 and 1}}
  %y = trt.gather %x, %i {mode = #trt<gather_mode element>} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<4xf32>
  func.return
}

// -----

func.func @gather_c6(%x: tensor<2x3xf32>, %i: tensor<4x3xi64>) {
  // expected-error@+1 {{C6: invalid dimension in GatherND: the last length of the indices of trt.gather is 3, expected 1 to 2}}
  %y = trt.gather %x, %i {mode = #trt<gather_mode nd>} : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  func.return
}
