// RUN: rt-opt %s | rt-opt | filecheck %s
// Writes by index.

// CHECK-LABEL: func.func @element
func.func @element(%x: tensor<2x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x1xf32>) {
  // CHECK: %y = trt.scatter %x, %i, %u {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x5xf32>
  %y = trt.scatter %x, %i, %u {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x5xf32>
  func.return
}

// CHECK-LABEL: func.func @nd_adds
func.func @nd_adds(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>, %u: tensor<3x5xf32>) {
  // CHECK: %y = trt.scatter %x, %i, %u {mode = #trt<scatter_mode nd>, reduction = #trt<scatter_reduction add>} : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %y = trt.scatter %x, %i, %u {mode = #trt<scatter_mode nd>, reduction = #trt<scatter_reduction add>} : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  func.return
}
