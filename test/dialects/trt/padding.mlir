// RUN: rt-opt %s | rt-opt | filecheck %s
// Padding and cropping.

// CHECK-LABEL: func.func @reflects
func.func @reflects(%x: tensor<2x3xf32>) {
  // CHECK: %y = trt.padding %x {pre = array<i64: 0, 1>, post = array<i64: 0, 1>, mode = #trt<pad_mode reflect>} : (tensor<2x3xf32>) -> tensor<2x5xf32>
  %y = trt.padding %x {pre = array<i64: 0, 1>, post = array<i64: 0, 1>, mode = #trt<pad_mode reflect>} : (tensor<2x3xf32>) -> tensor<2x5xf32>
  func.return
}

// CHECK-LABEL: func.func @constant_and_crop
func.func @constant_and_crop(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %v: tensor<f32>) {
  // CHECK: %y = trt.padding %x, %v {pre = array<i64: 2, -1>, post = array<i64: 0, 0>} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<f32>) -> tensor<?x2xf32, #trt.dims<["n + 2", "2"]>>
  %y = trt.padding %x, %v {pre = array<i64: 2, -1>, post = array<i64: 0, 0>} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<f32>) -> tensor<?x2xf32, #trt.dims<["n + 2", "2"]>>
  func.return
}
