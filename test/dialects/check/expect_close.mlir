// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK-LABEL: func.func @defaults
// CHECK-NEXT: [[X:%.*]] = check.input {value = dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>} : tensor<2xf32>
// CHECK-NEXT: check.expect_close [[X]], [[X]] : tensor<2xf32>, tensor<2xf32>
func.func @defaults() {
  %x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %x, %x : tensor<2xf32>, tensor<2xf32>
  func.return
}

// CHECK-LABEL: func.func @tolerances
// CHECK-NEXT: check.expect_close %x, %x {atol = 0.000000e+00 : f64, rtol = 1.000000e-02 : f64} : tensor<?xf32>, tensor<?xf32>
func.func @tolerances(%x: tensor<?xf32>) {
  check.expect_close %x, %x {atol = 0.0 : f64, rtol = 1.0e-2 : f64} : tensor<?xf32>, tensor<?xf32>
  func.return
}
