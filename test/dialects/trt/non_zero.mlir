// RUN: rt-opt %s | rt-opt | filecheck %s
// Where a tensor is not zero.

// CHECK-LABEL: func.func @matrix
func.func @matrix(%x: tensor<2x3xf32>) {
  // CHECK: %i = trt.non_zero %x : (tensor<2x3xf32>) -> tensor<2x?xi64>
  %i = trt.non_zero %x : (tensor<2x3xf32>) -> tensor<2x?xi64>
  func.return
}
