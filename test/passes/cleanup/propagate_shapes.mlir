// RUN: rt-opt %s --split-input-file -p propagate-shapes,dce | filecheck %s

// CHECK-LABEL: @arithmetic
// CHECK-SAME: -> tensor<?x12xf32, #trt.dims<["2*n", "12"]>>
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle %z {reshape_dims = #trt.dims<["2*n", "12"]>}
// CHECK-NEXT: [[U:%.*]] = trt.activation relu [[Y]] {{.*}} -> tensor<?x12xf32, #trt.dims<["2*n", "12"]>>
// CHECK-NEXT: func.return [[U]]
func.func @arithmetic(%x: tensor<?x6xf32, #trt.dims<["n", "6"]>>, %z: tensor<?x24xf32, #trt.dims<["n", "24"]>>) -> tensor<?x?xf32> {
  %two = trt.constant {value = dense<[2, 2]> : tensor<2xi64>} : tensor<2xi64>
  %s = trt.shape %x : (tensor<?x6xf32, #trt.dims<["n", "6"]>>) -> tensor<2xi64>
  %t = trt.elementwise prod %s, %two : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %y = trt.shuffle %z, %t : (tensor<?x24xf32, #trt.dims<["n", "24"]>>, tensor<2xi64>) -> tensor<?x?xf32>
  %u = trt.activation relu %y : (tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %u : tensor<?x?xf32>
}

// -----

// Flatten as exporters write it: shape, gather, product, concatenation.
// CHECK-LABEL: @flatten
// CHECK-NEXT: trt.shuffle %x {reshape_dims = #trt.dims<["n", "12"]>}
func.func @flatten(%x: tensor<?x3x4xf32, #trt.dims<["n", "3", "4"]>>) -> tensor<?x?xf32> {
  %first = trt.constant {value = dense<[0]> : tensor<1xi64>} : tensor<1xi64>
  %s = trt.shape %x : (tensor<?x3x4xf32, #trt.dims<["n", "3", "4"]>>) -> tensor<3xi64>
  %n = trt.gather %s, %first : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %rest = trt.slice %s {start = #trt.dims<["1"]>, size = #trt.dims<["2"]>, stride = array<i64: 1>} : (tensor<3xi64>) -> tensor<2xi64>
  %count = trt.reduce prod %rest {axes = array<i64: 0>} : (tensor<2xi64>) -> tensor<1xi64>
  %shape = trt.concatenation %n, %count {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = trt.shuffle %x, %shape : (tensor<?x3x4xf32, #trt.dims<["n", "3", "4"]>>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: @known_shape_is_a_constant
// CHECK-NEXT: trt.constant {value = dense<{{\[}}2, 3]> : tensor<2xi64>}
func.func @known_shape_is_a_constant(%x: tensor<2x3xf32>) -> tensor<2xi64> {
  %s = trt.shape %x : (tensor<2x3xf32>) -> tensor<2xi64>
  func.return %s : tensor<2xi64>
}

// -----

// CHECK-LABEL: @slice_by_operands
// CHECK-NEXT: trt.slice %x {start = #trt.dims<["n - 1", "0"]>, size = #trt.dims<["1", "4"]>, stride = array<i64: 1, 1>
func.func @slice_by_operands(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x?xf32> {
  %one = trt.constant {value = dense<[1, 4]> : tensor<2xi64>} : tensor<2xi64>
  %steps = trt.constant {value = dense<[1, 1]> : tensor<2xi64>} : tensor<2xi64>
  %s = trt.shape %x : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<2xi64>
  %start = trt.elementwise sub %s, %one : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %y = trt.slice %x start(%start : tensor<2xi64>) size(%one : tensor<2xi64>) stride(%steps : tensor<2xi64>)
       : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// A shape that is data of the run stays unknown.
// CHECK-LABEL: @data_dependent
// CHECK-NEXT: trt.shuffle %x, %s : {{.*}} -> tensor<?x?xf32>
func.func @data_dependent(%x: tensor<24xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %y = trt.shuffle %x, %s : (tensor<24xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
