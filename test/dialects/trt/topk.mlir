// RUN: rt-opt %s | rt-opt | filecheck %s
// The largest and smallest elements.

// CHECK-LABEL: func.func @max
func.func @max(%x: tensor<3x5xf32>) {
  // CHECK: %v, %i = trt.topk max %x {k = 2 : i64, axis = 1 : i64} : (tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %v, %i = trt.topk max %x {k = 2 : i64, axis = 1 : i64} : (tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  func.return
}

// CHECK-LABEL: func.func @min_unsorted
func.func @min_unsorted(%x: tensor<?xi32, #trt.dims<["n"]>>) {
  // CHECK: %v, %i = trt.topk min %x {k = 3 : i64, axis = 0 : i64, sorted = false} : (tensor<?xi32, #trt.dims<["n"]>>) -> (tensor<3xi32>, tensor<3xi64>)
  %v, %i = trt.topk min %x {k = 3 : i64, axis = 0 : i64, sorted = false} : (tensor<?xi32, #trt.dims<["n"]>>) -> (tensor<3xi32>, tensor<3xi64>)
  func.return
}

// CHECK:      func.func @all_in_order
// CHECK:        %v, %i = trt.topk max %x {size = #trt.dims<["n"]>, axis = 0 : i64} : (tensor<?xf32, #trt.dims<["n"]>>) -> (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xi64, #trt.dims<["n"]>>)
func.func @all_in_order(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  %v, %i = trt.topk max %x {size = #trt.dims<["n"]>, axis = 0 : i64} : (tensor<?xf32, #trt.dims<["n"]>>) -> (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xi64, #trt.dims<["n"]>>)
  func.return
}
