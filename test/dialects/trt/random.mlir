// RUN: rt-opt %s | rt-opt | filecheck %s
// Random numbers follow from the number of the run.

// CHECK-LABEL: func.func @uniform
func.func @uniform(%low: tensor<f16>, %high: tensor<f16>) {
  // CHECK: %r = trt.run_number : tensor<i64>
  %r = trt.run_number : tensor<i64>
  // CHECK: %y = trt.random uniform %r alpha(%low : tensor<f16>) beta(%high : tensor<f16>) {seed = 7 : i64, output_dims = #trt.dims<["n", "3"]>} : tensor<i64> -> tensor<?x3xf16, #trt.dims<["n", "3"]>>
  %y = trt.random uniform %r alpha(%low : tensor<f16>) beta(%high : tensor<f16>) {seed = 7 : i64, output_dims = #trt.dims<["n", "3"]>} : tensor<i64> -> tensor<?x3xf16, #trt.dims<["n", "3"]>>
  func.return
}

// CHECK-LABEL: func.func @of_a_run_time_shape
func.func @of_a_run_time_shape(%r: tensor<i64>, %s: tensor<2xi64>) {
  // CHECK: %y = trt.random normal %r shape(%s : tensor<2xi64>) : tensor<i64> -> tensor<?x?xf32>
  %y = trt.random normal %r shape(%s : tensor<2xi64>) : tensor<i64> -> tensor<?x?xf32>
  func.return
}
