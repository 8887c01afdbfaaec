// RUN: rt-opt %s | rt-opt | filecheck %s
// Two operands, element by element.

// CHECK-LABEL: func.func @sum_broadcasts
func.func @sum_broadcasts(%a: tensor<2x3xf32>, %b: tensor<1x3xf32>) {
  // CHECK: %y = trt.elementwise sum %a, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %y = trt.elementwise sum %a, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @comparison_gives_booleans
func.func @comparison_gives_booleans(%a: tensor<2xi32>) {
  // CHECK: %y = trt.elementwise less %a, %a : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  %y = trt.elementwise less %a, %a : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  func.return
}

// CHECK-LABEL: func.func @symbol_against_one
func.func @symbol_against_one(%a: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %b: tensor<1x3xf32>) {
  // CHECK: %y = trt.elementwise prod %a, %b : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<1x3xf32>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  %y = trt.elementwise prod %a, %b : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<1x3xf32>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  func.return
}

// CHECK-LABEL: func.func @unsigned_bits
func.func @unsigned_bits(%a: tensor<2xui8>) {
  // CHECK: %y = trt.elementwise bit_xor %a, %a : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %y = trt.elementwise bit_xor %a, %a : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  func.return
}
