// RUN: rt-opt %s | rt-opt | filecheck %s
// Pointwise activations.

// CHECK-LABEL: func.func @relu
func.func @relu(%x: tensor<2x3xf32>) {
  // CHECK: %y = trt.activation relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = trt.activation relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @leaky_relu_with_alpha
func.func @leaky_relu_with_alpha(%x: tensor<4xf16>) {
  // CHECK: %y = trt.activation leaky_relu %x {alpha = 1.000000e-01 : f64} : (tensor<4xf16>) -> tensor<4xf16>
  %y = trt.activation leaky_relu %x {alpha = 1.000000e-01 : f64} : (tensor<4xf16>) -> tensor<4xf16>
  func.return
}

// CHECK-LABEL: func.func @keeps_symbols
func.func @keeps_symbols(%x: tensor<?x4xbf16, #trt.dims<["n", "4"]>>) {
  // CHECK: %y = trt.activation gelu_erf %x : (tensor<?x4xbf16, #trt.dims<["n", "4"]>>) -> tensor<?x4xbf16, #trt.dims<["n", "4"]>>
  %y = trt.activation gelu_erf %x : (tensor<?x4xbf16, #trt.dims<["n", "4"]>>) -> tensor<?x4xbf16, #trt.dims<["n", "4"]>>
  func.return
}
