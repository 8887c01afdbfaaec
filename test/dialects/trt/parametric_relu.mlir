// RUN: rt-opt %s | rt-opt | filecheck %s
// Rectifiers with learned slopes.

// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<1x3x4xf32>, %s: tensor<1x3x1xf32>) {
  // CHECK: %y = trt.parametric_relu %x, %s : (tensor<1x3x4xf32>, tensor<1x3x1xf32>) -> tensor<1x3x4xf32>
  %y = trt.parametric_relu %x, %s : (tensor<1x3x4xf32>, tensor<1x3x1xf32>) -> tensor<1x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @data_broadcasts_to_slope
func.func @data_broadcasts_to_slope(%x: tensor<1x1xf32>, %s: tensor<2x3xf32>) {
  // CHECK: %y = trt.parametric_relu %x, %s : (tensor<1x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = trt.parametric_relu %x, %s : (tensor<1x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
