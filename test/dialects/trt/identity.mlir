// RUN: rt-opt %s | rt-opt | filecheck %s
// Conversions between element types.

// CHECK-LABEL: func.func @to_integers
func.func @to_integers(%x: tensor<4xf32>) {
  // CHECK: %y = trt.identity %x : (tensor<4xf32>) -> tensor<4xi32>
  %y = trt.identity %x : (tensor<4xf32>) -> tensor<4xi32>
  func.return
}

// CHECK-LABEL: func.func @to_unsigned
func.func @to_unsigned(%x: tensor<?xbf16, #trt.dims<["n"]>>) {
  // CHECK: %y = trt.identity %x : (tensor<?xbf16, #trt.dims<["n"]>>) -> tensor<?xui8, #trt.dims<["n"]>>
  %y = trt.identity %x : (tensor<?xbf16, #trt.dims<["n"]>>) -> tensor<?xui8, #trt.dims<["n"]>>
  func.return
}
