// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @shuffle_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{C1: first_transpose [0, 0] of trt.shuffle is not a permutation of 2 axes}}
  %y = trt.shuffle %x {first_transpose = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return
}

// -----

func.func @shuffle_c2(%x: tensor<6xf32>) {
  // expected-error@+1 {{C2: second_transpose [0] of trt.shuffle is not a permutation of 2 axes}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3"]>, second_transpose = array<i64: 0>} : (tensor<6xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @shuffle_c3(%x: tensor<6xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{C3: trt.shuffle has the shape as an operand and as reshape_dims, expected one of them}}
  %y = trt.shuffle %x, %s {reshape_dims = #trt.dims<["6"]>} : (tensor<6xf32>, tensor<1xi64>) -> tensor<6xf32>
  func.return
}

// -----

func.func @shuffle_c4(%x: tensor<6xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{C4: the shape operand of trt.shuffle must be a 1-D tensor of integers, but it is tensor<2xf32>}}
  %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  func.return
}

// -----

func.func @shuffle_c5(%x: tensor<6xf32>) {
  // expected-error@+1 {{C5: [-1, -1] is no shape for trt.shuffle: one -1, else lengths}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["-1", "-1"]>} : (tensor<6xf32>) -> tensor<6x1xf32>
  func.return
}

// -----

func.func @shuffle_c6(%x: tensor<6xf32>) {
  // expected-error@+1 {{C6: the 0 on axis 1 of [6, 0] copies an axis that the input of trt.shuffle lacks}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["6", "0"]>} : (tensor<6xf32>) -> tensor<6x1xf32>
  func.return
}

// -----

func.func @shuffle_c7(%x: tensor<6xf32>) {
  // expected-error@+1 {{C7: trt.shuffle from [6] to [2, 4]: 6 elements became 8}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["2", "4"]>} : (tensor<6xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

func.func @shuffle_c7_no_solution(%x: tensor<6xf32>) {
  // expected-error@+1 {{C7: trt.shuffle from [6] to [4, -1]: no length in place of -1 keeps 6 elements}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["4", "-1"]>} : (tensor<6xf32>) -> tensor<4x1xf32>
  func.return
}

// -----

func.func @shuffle_c7_undetermined(%x: tensor<0x3xf32>) {
  // expected-error@+1 {{C7: trt.shuffle from [0, 3] to [0, -1]: -1 is undetermined, because the other lengths make 0 elements}}
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<0x3xf32>) -> tensor<0x3xf32>
  func.return
}
