// RUN: rt-opt %s | rt-opt | filecheck %s
// Products of matrices and vectors.

// CHECK-LABEL: func.func @batch_broadcasts
func.func @batch_broadcasts(%a: tensor<2x3x4xf32>, %b: tensor<1x5x4xf32>) {
  // CHECK: %y = trt.matrix_multiply %a, %b {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x3x4xf32>, tensor<1x5x4xf32>) -> tensor<2x3x5xf32>
  %y = trt.matrix_multiply %a, %b {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x3x4xf32>, tensor<1x5x4xf32>) -> tensor<2x3x5xf32>
  func.return
}

// CHECK-LABEL: func.func @vector_on_the_right
func.func @vector_on_the_right(%a: tensor<3x4xf32>, %b: tensor<4xf32>) {
  // CHECK: %y = trt.matrix_multiply %a, %b {rhs_op = #trt<matrix_operation vector>} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
  %y = trt.matrix_multiply %a, %b {rhs_op = #trt<matrix_operation vector>} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
  func.return
}

// CHECK-LABEL: func.func @inner_product
func.func @inner_product(%a: tensor<4xi32>) {
  // CHECK: %y = trt.matrix_multiply %a, %a {lhs_op = #trt<matrix_operation vector>, rhs_op = #trt<matrix_operation vector>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<i32>
  %y = trt.matrix_multiply %a, %a {lhs_op = #trt<matrix_operation vector>, rhs_op = #trt<matrix_operation vector>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<i32>
  func.return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%a: tensor<?x4xf32, #trt.dims<["n", "4"]>>, %b: tensor<4x5xf32>) {
  // CHECK: %y = trt.matrix_multiply %a, %b : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x5xf32>) -> tensor<?x5xf32, #trt.dims<["n", "5"]>>
  %y = trt.matrix_multiply %a, %b : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x5xf32>) -> tensor<?x5xf32, #trt.dims<["n", "5"]>>
  func.return
}

// CHECK-LABEL: func.func @bytes
func.func @bytes(%a: tensor<3x4xui8>, %b: tensor<4x5xi8>) {
  // CHECK: %y = trt.matrix_multiply %a, %b : (tensor<3x4xui8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  %y = trt.matrix_multiply %a, %b : (tensor<3x4xui8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  func.return
}
