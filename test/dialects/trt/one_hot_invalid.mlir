// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @one_hot_c1(%i: tensor<3xf32>, %v: tensor<2xf32>, %d: tensor<i64>) {
  // expected-error@+1 {{C1: indices of trt.one_hot needs integers, not f32}}
  %y = trt.one_hot %i, %v, %d {axis = 0 : i64} : (tensor<3xf32>, tensor<2xf32>, tensor<i64>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @one_hot_c2(%i: tensor<3xi64>, %v: tensor<3xf32>, %d: tensor<i64>) {
  // expected-error@+1 {{C2: values of trt.one_hot has 3 elements, expected 2}}
  %y = trt.one_hot %i, %v, %d {axis = 0 : i64} : (tensor<3xi64>, tensor<3xf32>, tensor<i64>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @one_hot_c3(%i: tensor<3xi64>, %v: tensor<2xf32>, %d: tensor<1xi64>) {
  // expected-error@+1 {{C3: depth of trt.one_hot is tensor<1xi64>, expected a scalar}}
  %y = trt.one_hot %i, %v, %d {axis = 0 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<1xi64>) -> tensor<?x3xf32>
  func.return
}

// -----

func.func @one_hot_c4(%i: tensor<3xi64>, %v: tensor<2xf32>, %d: tensor<i64>) {
  // expected-error@+1 {{C4: axis 2 of trt.one_hot is not in the range 0 to 1}}
  %y = trt.one_hot %i, %v, %d {axis = 2 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) -> tensor<3x?xf32>
  func.return
}
