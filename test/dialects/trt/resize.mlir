// RUN: rt-opt %s | rt-opt | filecheck %s
// Resampling.

// CHECK-LABEL: func.func @by_scales
func.func @by_scales(%x: tensor<1x3x4x4xf32>) {
  // CHECK: %y = trt.resize linear %x {scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 5.000000e-01>, coordinate = #trt<coordinate half_pixel>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x2xf32>
  %y = trt.resize linear %x {scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 5.000000e-01>, coordinate = #trt<coordinate half_pixel>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x2xf32>
  func.return
}

// CHECK-LABEL: func.func @by_lengths
func.func @by_lengths(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>>) {
  // CHECK: %y = trt.resize nearest %x {output_dims = #trt.dims<["n", "7"]>, rounding = #trt<rounding half_up>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x7xf32, #trt.dims<["n", "7"]>>
  %y = trt.resize nearest %x {output_dims = #trt.dims<["n", "7"]>, rounding = #trt<rounding half_up>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x7xf32, #trt.dims<["n", "7"]>>
  func.return
}

// CHECK-LABEL: func.func @by_operand
func.func @by_operand(%x: tensor<4x4xf32>, %s: tensor<2xi64>) {
  // CHECK: %y = trt.resize cubic %x, %s {cubic_coeff = -5.000000e-01 : f64, exclude_outside = true, antialias = true} : (tensor<4x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %y = trt.resize cubic %x, %s {cubic_coeff = -5.000000e-01 : f64, exclude_outside = true, antialias = true} : (tensor<4x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return
}

// CHECK-LABEL: func.func @symbolic_scale
func.func @symbolic_scale(%x: tensor<1x?xf32, #trt.dims<["1", "w"]>>) {
  // CHECK: %y = trt.resize nearest %x {scales = array<f64: 1.000000e+00, 2.500000e+00>} : (tensor<1x?xf32, #trt.dims<["1", "w"]>>) -> tensor<1x?xf32, #trt.dims<["1", "5*w // 2"]>>
  %y = trt.resize nearest %x {scales = array<f64: 1.000000e+00, 2.500000e+00>} : (tensor<1x?xf32, #trt.dims<["1", "w"]>>) -> tensor<1x?xf32, #trt.dims<["1", "5*w // 2"]>>
  func.return
}

// CHECK-LABEL: func.func @crop
func.func @crop(%x: tensor<8xf32>) {
  // CHECK: %y = trt.resize linear %x {output_dims = #trt.dims<["4"]>, coordinate = #trt<coordinate tf_crop_and_resize>, roi = array<f64: 2.500000e-01, 7.500000e-01>, extrapolation_value = 1.000000e+01 : f64} : (tensor<8xf32>) -> tensor<4xf32>
  %y = trt.resize linear %x {output_dims = #trt.dims<["4"]>, coordinate = #trt<coordinate tf_crop_and_resize>, roi = array<f64: 2.500000e-01, 7.500000e-01>, extrapolation_value = 1.000000e+01 : f64} : (tensor<8xf32>) -> tensor<4xf32>
  func.return
}
