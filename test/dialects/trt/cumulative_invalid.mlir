// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @cumulative_c1(%x: tensor<4xi1>) {
  // expected-error@+1 {{C1: trt.cumulative needs numbers, but its input is boolean}}
  %y = trt.cumulative sum %x {axis = 0 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  func.return
}

// -----

func.func @cumulative_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{C2: axis 1 of trt.cumulative is not in the range 0 to 0 of its input's axes}}
  %y = trt.cumulative sum %x {axis = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
