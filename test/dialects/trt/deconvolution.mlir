// RUN: rt-opt %s | rt-opt | filecheck %s
// Deconvolutions over one, two and three axes.

// CHECK-LABEL: func.func @doubles
func.func @doubles(%x: tensor<1x3x4x4xf32>, %w: tensor<3x5x2x2xf32>) {
  // CHECK: %y = trt.deconvolution %x, %w {stride = array<i64: 2, 2>} : (tensor<1x3x4x4xf32>, tensor<3x5x2x2xf32>) -> tensor<1x5x8x8xf32>
  %y = trt.deconvolution %x, %w {stride = array<i64: 2, 2>} : (tensor<1x3x4x4xf32>, tensor<3x5x2x2xf32>) -> tensor<1x5x8x8xf32>
  func.return
}

// CHECK-LABEL: func.func @grouped_with_bias
func.func @grouped_with_bias(%x: tensor<1x4x5xf32>, %w: tensor<4x3x3xf32>, %b: tensor<6xf32>) {
  // CHECK: %y = trt.deconvolution %x, %w, %b {stride = array<i64: 2>, pre_padding = array<i64: 1>, post_padding = array<i64: 1>, num_groups = 2 : i64, output_padding = array<i64: 1>} : (tensor<1x4x5xf32>, tensor<4x3x3xf32>, tensor<6xf32>) -> tensor<1x6x10xf32>
  %y = trt.deconvolution %x, %w, %b {stride = array<i64: 2>, pre_padding = array<i64: 1>, post_padding = array<i64: 1>, num_groups = 2 : i64, output_padding = array<i64: 1>} : (tensor<1x4x5xf32>, tensor<4x3x3xf32>, tensor<6xf32>) -> tensor<1x6x10xf32>
  func.return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<1x3x?xf32, #trt.dims<["1", "3", "w"]>>, %w: tensor<3x5x4xf32>) {
  // CHECK: %y = trt.deconvolution %x, %w {stride = array<i64: 2>, padding_mode = #trt<padding_mode same_upper>} : (tensor<1x3x?xf32, #trt.dims<["1", "3", "w"]>>, tensor<3x5x4xf32>) -> tensor<1x5x?xf32, #trt.dims<["1", "5", "2*w"]>>
  %y = trt.deconvolution %x, %w {stride = array<i64: 2>, padding_mode = #trt<padding_mode same_upper>} : (tensor<1x3x?xf32, #trt.dims<["1", "3", "w"]>>, tensor<3x5x4xf32>) -> tensor<1x5x?xf32, #trt.dims<["1", "5", "2*w"]>>
  func.return
}
