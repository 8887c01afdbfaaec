// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @padding_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{C1: pre and post of trt.padding have 1 and 2 entries, expected 2}}
  %y = trt.padding %x {pre = array<i64: 1>, post = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

func.func @padding_c2(%x: tensor<3xf32>) {
  // expected-error@+1 {{C2: trt.padding crops axis 0 of length 3 to -1}}
  %y = trt.padding %x {pre = array<i64: -4>, post = array<i64: 0>} : (tensor<3xf32>) -> tensor<0xf32>
  func.return
}

// -----

func.func @padding_c3(%x: tensor<3xf32>, %v: tensor<1xf32>) {
  // expected-error@+1 {{C3: value of trt.padding is tensor<1xf32>, expected a scalar of f32}}
  %y = trt.padding %x, %v {pre = array<i64: 1>, post = array<i64: 0>} : (tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @padding_c4(%x: tensor<0xf32>) {
  // expected-error@+1 {{C4: trt.padding has nothing to edge on axis 0 of length 0}}
  %y = trt.padding %x {pre = array<i64: 1>, post = array<i64: 0>, mode = #trt<pad_mode edge>} : (tensor<0xf32>) -> tensor<1xf32>
  func.return
}
