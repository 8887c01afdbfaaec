// RUN: rt-opt %s | rt-opt | filecheck %s
// One-hot encoding.

// CHECK-LABEL: func.func @constant_depth
func.func @constant_depth(%i: tensor<3xi64>, %v: tensor<2xf32>) {
  // CHECK: %d = trt.constant {value = dense<5> : tensor<i64>} : tensor<i64>
  %d = trt.constant {value = dense<5> : tensor<i64>} : tensor<i64>
  // CHECK: %y = trt.one_hot %i, %v, %d {axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) -> tensor<3x5xf32>
  %y = trt.one_hot %i, %v, %d {axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) -> tensor<3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @depth_at_run_time
func.func @depth_at_run_time(%i: tensor<3xi64>, %v: tensor<2xf32>, %d: tensor<i64>) {
  // CHECK: %y = trt.one_hot %i, %v, %d {axis = 0 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) -> tensor<?x3xf32>
  %y = trt.one_hot %i, %v, %d {axis = 0 : i64} : (tensor<3xi64>, tensor<2xf32>, tensor<i64>) -> tensor<?x3xf32>
  func.return
}
