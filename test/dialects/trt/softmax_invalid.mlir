// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%x: tensor<4xi32>) {
  // expected-error@+1 {{C1: trt.softmax needs floating-point numbers, not i32}}
  %y = trt.softmax %x {axis = 0 : i64} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @softmax_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: axis 1 of trt.softmax is not in the range 0 to 0 of its input's axes}}
  %y = trt.softmax %x {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
