// RUN: rt-opt %s | rt-opt | filecheck %s
// Dimensions as values.

// CHECK-LABEL: func.func @matrix
func.func @matrix(%x: tensor<2x3xf32>) {
  // CHECK: %s = trt.shape %x : (tensor<2x3xf32>) -> tensor<2xi64>
  %s = trt.shape %x : (tensor<2x3xf32>) -> tensor<2xi64>
  func.return
}

// CHECK-LABEL: func.func @scalar
func.func @scalar(%x: tensor<i1>) {
  // CHECK: %s = trt.shape %x : (tensor<i1>) -> tensor<0xi64>
  %s = trt.shape %x : (tensor<i1>) -> tensor<0xi64>
  func.return
}
