// RUN: rt-opt %s | rt-opt | filecheck %s
// Transpositions and reshapes.

// CHECK-LABEL: func.func @transpose_and_reshape
func.func @transpose_and_reshape(%x: tensor<2x3x4xf32>) {
  // CHECK: %y = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>, reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %y = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>, reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  func.return
}

// CHECK-LABEL: func.func @second_transpose
func.func @second_transpose(%x: tensor<2x12xf32>) {
  // CHECK: %y = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3", "4"]>, second_transpose = array<i64: 2, 0, 1>} : (tensor<2x12xf32>) -> tensor<4x2x3xf32>
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3", "4"]>, second_transpose = array<i64: 2, 0, 1>} : (tensor<2x12xf32>) -> tensor<4x2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @symbolic_minus_one
func.func @symbolic_minus_one(%x: tensor<?x3x?xf32, #trt.dims<["n", "3", "w"]>>) {
  // CHECK: %y = trt.shuffle %x {reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<?x3x?xf32, #trt.dims<["n", "3", "w"]>>) -> tensor<?x?xf32, #trt.dims<["n", "3*w"]>>
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<?x3x?xf32, #trt.dims<["n", "3", "w"]>>) -> tensor<?x?xf32, #trt.dims<["n", "3*w"]>>
  func.return
}

// CHECK-LABEL: func.func @run_time_shape
func.func @run_time_shape(%x: tensor<6xf32>, %s: tensor<2xi64>) {
  // CHECK: %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return
}

// CHECK-LABEL: func.func @constant_shape
func.func @constant_shape(%x: tensor<6xf32>) {
  // CHECK: %s = trt.constant {value = dense<[2, -1]> : tensor<2xi64>} : tensor<2xi64>
  %s = trt.constant {value = dense<[2, -1]> : tensor<2xi64>} : tensor<2xi64>
  // CHECK: %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %y = trt.shuffle %x, %s : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @zero_is_a_length
func.func @zero_is_a_length(%x: tensor<3x0xf32>) {
  // CHECK: %y = trt.shuffle %x {reshape_dims = #trt.dims<["0", "0"]>, zero_is_placeholder = false} : (tensor<3x0xf32>) -> tensor<0x0xf32>
  %y = trt.shuffle %x {reshape_dims = #trt.dims<["0", "0"]>, zero_is_placeholder = false} : (tensor<3x0xf32>) -> tensor<0x0xf32>
  func.return
}
