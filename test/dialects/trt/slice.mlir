// RUN: rt-opt %s | rt-opt | filecheck %s
// Strided windows.

// CHECK-LABEL: func.func @strided
func.func @strided(%x: tensor<2x5xf32>) {
  // CHECK: %y = trt.slice %x {start = #trt.dims<["0", "1"]>, size = #trt.dims<["2", "2"]>, stride = array<i64: 1, 2>} : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %y = trt.slice %x {start = #trt.dims<["0", "1"]>, size = #trt.dims<["2", "2"]>, stride = array<i64: 1, 2>} : (tensor<2x5xf32>) -> tensor<2x2xf32>
  func.return
}

// CHECK-LABEL: func.func @backwards_from_a_symbolic_end
func.func @backwards_from_a_symbolic_end(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // CHECK: %y = trt.slice %x {start = #trt.dims<["n - 1"]>, size = #trt.dims<["n"]>, stride = array<i64: -1>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
  %y = trt.slice %x {start = #trt.dims<["n - 1"]>, size = #trt.dims<["n"]>, stride = array<i64: -1>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
  func.return
}

// CHECK-LABEL: func.func @repeats_with_stride_0
func.func @repeats_with_stride_0(%x: tensor<1x3xf32>) {
  // CHECK: %y = trt.slice %x {start = #trt.dims<["0", "0"]>, size = #trt.dims<["4", "3"]>, stride = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  %y = trt.slice %x {start = #trt.dims<["0", "0"]>, size = #trt.dims<["4", "3"]>, stride = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return
}

// CHECK-LABEL: func.func @fills
func.func @fills(%x: tensor<3xf32>, %f: tensor<f32>) {
  // CHECK: %y = trt.slice %x fill(%f : tensor<f32>) {start = #trt.dims<["-1"]>, size = #trt.dims<["5"]>, stride = array<i64: 1>, mode = #trt<slice_mode fill>} : (tensor<3xf32>) -> tensor<5xf32>
  %y = trt.slice %x fill(%f : tensor<f32>) {start = #trt.dims<["-1"]>, size = #trt.dims<["5"]>, stride = array<i64: 1>, mode = #trt<slice_mode fill>} : (tensor<3xf32>) -> tensor<5xf32>
  func.return
}

// CHECK-LABEL: func.func @at_run_time
func.func @at_run_time(%x: tensor<3xf32>, %a: tensor<1xi64>, %b: tensor<1xi32>) {
  // CHECK: %y = trt.slice %x start(%a : tensor<1xi64>) size(%b : tensor<1xi32>) stride(%a : tensor<1xi64>) : (tensor<3xf32>) -> tensor<?xf32>
  %y = trt.slice %x start(%a : tensor<1xi64>) size(%b : tensor<1xi32>) stride(%a : tensor<1xi64>) : (tensor<3xf32>) -> tensor<?xf32>
  func.return
}
