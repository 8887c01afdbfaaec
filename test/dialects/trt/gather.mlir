// RUN: rt-opt %s | rt-opt | filecheck %s
// Reads by index.

// CHECK-LABEL: func.func @default
func.func @default(%x: tensor<2x5xf32>, %i: tensor<3xi64>) {
  // CHECK: %y = trt.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %y = trt.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @elementwise_dims
func.func @elementwise_dims(%x: tensor<2x5x6x7xf32>, %i: tensor<2x4xi32>) {
  // CHECK: %y = trt.gather %x, %i {axis = 1 : i64, num_elementwise_dims = 1 : i64} : (tensor<2x5x6x7xf32>, tensor<2x4xi32>) -> tensor<2x4x6x7xf32>
  %y = trt.gather %x, %i {axis = 1 : i64, num_elementwise_dims = 1 : i64} : (tensor<2x5x6x7xf32>, tensor<2x4xi32>) -> tensor<2x4x6x7xf32>
  func.return
}

// CHECK-LABEL: func.func @element
func.func @element(%x: tensor<2x5xf32>, %i: tensor<2x3xi64>) {
  // CHECK: %y = trt.gather %x, %i {mode = #trt<gather_mode element>, axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  %y = trt.gather %x, %i {mode = #trt<gather_mode element>, axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @nd
func.func @nd(%x: tensor<?x5x6xf32, #trt.dims<["n", "5", "6"]>>, %i: tensor<4x2xi64>) {
  // CHECK: %y = trt.gather %x, %i {mode = #trt<gather_mode nd>} : (tensor<?x5x6xf32, #trt.dims<["n", "5", "6"]>>, tensor<4x2xi64>) -> tensor<4x6xf32>
  %y = trt.gather %x, %i {mode = #trt<gather_mode nd>} : (tensor<?x5x6xf32, #trt.dims<["n", "5", "6"]>>, tensor<4x2xi64>) -> tensor<4x6xf32>
  func.return
}
