// RUN: rt-opt %s | rt-opt | filecheck %s
// Sums of products.

// CHECK-LABEL: func.func @matrix_product
func.func @matrix_product(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // CHECK: %y = trt.einsum %a, %b {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = trt.einsum %a, %b {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @ellipsis
func.func @ellipsis(%a: tensor<?x2x3xf32, #trt.dims<["n", "2", "3"]>>, %b: tensor<3x4xf32>) {
  // CHECK: %y = trt.einsum %a, %b {equation = "...ij,jk"} : (tensor<?x2x3xf32, #trt.dims<["n", "2", "3"]>>, tensor<3x4xf32>) -> tensor<?x2x4xf32, #trt.dims<["n", "2", "4"]>>
  %y = trt.einsum %a, %b {equation = "...ij,jk"} : (tensor<?x2x3xf32, #trt.dims<["n", "2", "3"]>>, tensor<3x4xf32>) -> tensor<?x2x4xf32, #trt.dims<["n", "2", "4"]>>
  func.return
}

// CHECK-LABEL: func.func @trace
func.func @trace(%a: tensor<3x3xf32>) {
  // CHECK: %y = trt.einsum %a {equation = "ii->"} : (tensor<3x3xf32>) -> tensor<f32>
  %y = trt.einsum %a {equation = "ii->"} : (tensor<3x3xf32>) -> tensor<f32>
  func.return
}
