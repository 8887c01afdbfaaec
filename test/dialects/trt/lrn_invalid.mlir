// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @lrn_c1(%x: tensor<1x8x4x4xi8>) {
  // expected-error@+1 {{C1: trt.lrn needs floating-point numbers, not i8}}
  %y = trt.lrn %x {window = 5 : i64, alpha = 1.0 : f64, beta = 1.0 : f64, k = 1.0 : f64} : (tensor<1x8x4x4xi8>) -> tensor<1x8x4x4xi8>
  func.return
}

// -----

func.func @lrn_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{C2: the input of trt.lrn has rank 2, expected 3 or more}}
  %y = trt.lrn %x {window = 5 : i64, alpha = 1.0 : f64, beta = 1.0 : f64, k = 1.0 : f64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return
}

// -----

func.func @lrn_c3(%x: tensor<8x4x4xf32>) {
  // expected-error@+1 {{C3: the window of trt.lrn must be positive, but it is 0}}
  %y = trt.lrn %x {window = 0 : i64, alpha = 1.0 : f64, beta = 1.0 : f64, k = 1.0 : f64} : (tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  func.return
}
