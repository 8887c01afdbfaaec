// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @reduce_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{C1: axis 1 of trt.reduce is not in the range 0 to 0 of its input's axes}}
  %y = trt.reduce sum %x {axes = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @reduce_c2(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{C2: trt.reduce has an axis twice: [1, 1]}}
  %y = trt.reduce sum %x {axes = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  func.return
}

// -----

func.func @reduce_c3(%x: tensor<4xi1>) {
  // expected-error@+1 {{C3: trt.reduce sum needs numbers, but its input is boolean}}
  %y = trt.reduce sum %x {axes = array<i64: 0>} : (tensor<4xi1>) -> tensor<1xi1>
  func.return
}
