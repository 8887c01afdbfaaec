// RUN: rt-opt %s | rt-opt | filecheck %s
// Sampling at computed positions.

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<1x3x4x4xf32>, %g: tensor<1x6x6x2xf32>) {
  // CHECK: %y = trt.grid_sample linear %x, %g : (tensor<1x3x4x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  %y = trt.grid_sample linear %x, %g : (tensor<1x3x4x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  func.return
}

// CHECK-LABEL: func.func @cubic_reflects
func.func @cubic_reflects(%x: tensor<1x3x4x4xf32>, %g: tensor<1x6x6x2xf32>) {
  // CHECK: %y = trt.grid_sample cubic %x, %g {align_corners = true, mode = #trt<sample_mode reflect>} : (tensor<1x3x4x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  %y = trt.grid_sample cubic %x, %g {align_corners = true, mode = #trt<sample_mode reflect>} : (tensor<1x3x4x4xf32>, tensor<1x6x6x2xf32>) -> tensor<1x3x6x6xf32>
  func.return
}
