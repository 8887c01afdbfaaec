// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @expect_close_c1(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{C1: check.expect_close compares tensors of one type, but got tensor<2xf32> and tensor<3xf32>}}
  check.expect_close %x, %y : tensor<2xf32>, tensor<3xf32>
  func.return
}

// -----

func.func @expect_close_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{C2: check.expect_close has a negative tolerance}}
  check.expect_close %x, %x {rtol = -1.0 : f64} : tensor<2xf32>, tensor<2xf32>
  func.return
}

// -----

func.func @input_c1() {
  // expected-error@+1 {{C1: check.input needs constant dimensions}}
  %x = check.input {value = dense<1.0> : tensor<2xf32>} : tensor<?xf32>
  func.return
}

// -----

func.func @input_c2() {
  // expected-error@+1 {{C2: the value of check.input has type tensor<2xf32>, its result tensor<3xf32>}}
  %x = check.input {value = dense<1.0> : tensor<2xf32>} : tensor<3xf32>
  func.return
}
