// RUN: rt-opt %s | rt-opt | filecheck %s
// Local response normalisation.

// CHECK-LABEL: func.func @lrn
func.func @lrn(%x: tensor<1x8x4x4xf32>) {
  // CHECK: %y = trt.lrn %x {window = 5 : i64, alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, k = 1.000000e+00 : f64} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %y = trt.lrn %x {window = 5 : i64, alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, k = 1.000000e+00 : f64} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  func.return
}
