// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @pooling_c1(%x: tensor<1x4xi1>) {
  // expected-error@+1 {{C1: trt.pooling needs numbers, but its input is boolean}}
  %y = trt.pooling max %x {window = array<i64: 2>} : (tensor<1x4xi1>) -> tensor<1x3xi1>
  func.return
}

// -----

func.func @pooling_c2(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{C2: the window of trt.pooling has 0 axes, expected 1, 2 or 3}}
  %y = trt.pooling max %x {window = array<i64>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @pooling_c3(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{C3: the input of trt.pooling has rank 2, its window needs at least 3}}
  %y = trt.pooling max %x {window = array<i64: 2, 2>} : (tensor<4x4xf32>) -> tensor<3x3xf32>
  func.return
}

// -----

func.func @pooling_c4(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{C4: pre_padding of trt.pooling has 2 entries, the window has 1 axes}}
  %y = trt.pooling max %x {window = array<i64: 2>, pre_padding = array<i64: 1, 1>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @pooling_c5(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{C5: the window of trt.pooling reaches 5 cells, but spatial axis 0 with its pads has only 4}}
  %y = trt.pooling max %x {window = array<i64: 5>} : (tensor<1x4xf32>) -> tensor<1x0xf32>
  func.return
}

// -----

func.func @pooling_c6(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{C6: blend_factor 1.5 of trt.pooling is not in [0, 1]}}
  %y = trt.pooling max_average_blend %x {window = array<i64: 2>, blend_factor = 1.5 : f64} : (tensor<1x4xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @pooling_c7(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{C7: short_input of trt.pooling needs padding_mode explicit_round_down}}
  %y = trt.pooling max %x {window = array<i64: 2>, padding_mode = #trt<padding_mode explicit_round_up>, short_input = #trt<short_input padded>} : (tensor<1x4xf32>) -> tensor<1x3xf32>
  func.return
}
