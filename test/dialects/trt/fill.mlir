// RUN: rt-opt %s | rt-opt | filecheck %s
// Tensors made from their indices.

// CHECK-LABEL: func.func @range
func.func @range(%a: tensor<i64>, %b: tensor<i64>) {
  // CHECK: %y = trt.fill linspace alpha(%a : tensor<i64>) beta(%b : tensor<i64>) {output_dims = #trt.dims<["8"]>} : tensor<8xi64>
  %y = trt.fill linspace alpha(%a : tensor<i64>) beta(%b : tensor<i64>) {output_dims = #trt.dims<["8"]>} : tensor<8xi64>
  func.return
}

// CHECK-LABEL: func.func @symbolic_zeros
func.func @symbolic_zeros() {
  // CHECK: %y = trt.fill linspace {output_dims = #trt.dims<["n", "3"]>} : tensor<?x3xf16, #trt.dims<["n", "3"]>>
  %y = trt.fill linspace {output_dims = #trt.dims<["n", "3"]>} : tensor<?x3xf16, #trt.dims<["n", "3"]>>
  func.return
}

// CHECK-LABEL: func.func @at_run_time
func.func @at_run_time(%s: tensor<2xi64>, %b: tensor<2xf32>) {
  // CHECK: %y = trt.fill linspace shape(%s : tensor<2xi64>) beta(%b : tensor<2xf32>) : tensor<?x?xf32>
  %y = trt.fill linspace shape(%s : tensor<2xi64>) beta(%b : tensor<2xf32>) : tensor<?x?xf32>
  func.return
}
