// RUN: rt-opt %s | rt-opt | filecheck %s
// Softmax and its logarithm.

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<1x10xf32>) {
  // CHECK: %y = trt.softmax %x {axis = 1 : i64} : (tensor<1x10xf32>) -> tensor<1x10xf32>
  %y = trt.softmax %x {axis = 1 : i64} : (tensor<1x10xf32>) -> tensor<1x10xf32>
  func.return
}

// CHECK-LABEL: func.func @logarithm
func.func @logarithm(%x: tensor<1x10xf16>) {
  // CHECK: %y = trt.softmax %x {axis = 0 : i64, log = true} : (tensor<1x10xf16>) -> tensor<1x10xf16>
  %y = trt.softmax %x {axis = 0 : i64, log = true} : (tensor<1x10xf16>) -> tensor<1x10xf16>
  func.return
}
