// RUN: rt-opt %s | rt-opt | filecheck %s
// Joining tensors.

// CHECK-LABEL: func.func @two
func.func @two(%a: tensor<1x2xf32>, %b: tensor<1x3xf32>) {
  // CHECK: %y = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>
  %y = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>
  func.return
}

// CHECK-LABEL: func.func @symbols_add_up
func.func @symbols_add_up(%a: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %b: tensor<2x3xf32>) {
  // CHECK: %y = trt.concatenation %a, %b, %a {axis = 0 : i64} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<2x3xf32>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["2*n + 2", "3"]>>
  %y = trt.concatenation %a, %b, %a {axis = 0 : i64} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<2x3xf32>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["2*n + 2", "3"]>>
  func.return
}

// CHECK-LABEL: func.func @empty_part
func.func @empty_part(%a: tensor<0x2xi1>, %b: tensor<3x2xi1>) {
  // CHECK: %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<0x2xi1>, tensor<3x2xi1>) -> tensor<3x2xi1>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<0x2xi1>, tensor<3x2xi1>) -> tensor<3x2xi1>
  func.return
}
