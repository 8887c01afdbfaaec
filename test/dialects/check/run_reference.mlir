// Every function without arguments runs; a failing check is an error on its line.
// RUN: rt-opt %s --split-input-file --verify-diagnostics --run=reference
// RUN: rt-opt %s --split-input-file --verify-diagnostics --run=reference -p 'canonicalize,cse,dce'

func.func @holds() {
  %x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %expected = trt.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %y, %expected : tensor<2xf32>, tensor<2xf32>
  func.return
}

// -----

func.func @fails() {
  %x = check.input {value = dense<[[1.0, -2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %expected = trt.constant {value = dense<[[1.0, -2.5], [3.0, 4.125]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  // expected-error@+1 {{2 of 4 elements are wrong, the worst at [0, 1]: -2.0, expected -2.5}}
  check.expect_close %x, %expected : tensor<2x2xf32>, tensor<2x2xf32>
  func.return
}

// -----

func.func @tolerance_and_nan() {
  %x = check.input {value = dense<[1.0, 0x7FC00000]> : tensor<2xf32>} : tensor<2xf32>
  %n = trt.constant {value = dense<"0x0000803F0000C07F"> : tensor<2xf32>} : tensor<2xf32>
  %near = check.input {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %far = check.input {value = dense<[1.09, 2.1]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %n, %n : tensor<2xf32>, tensor<2xf32>
  check.expect_close %near, %far {rtol = 0.1 : f64} : tensor<2xf32>, tensor<2xf32>
  func.return
}

// -----

// A chunk whose functions have arguments is passed over.
func.func @needs_input(%x: tensor<2xf32>) {
  func.return
}
