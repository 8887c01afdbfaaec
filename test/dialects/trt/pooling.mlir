// RUN: rt-opt %s | rt-opt | filecheck %s
// Pooling windows.

// CHECK-LABEL: func.func @max
func.func @max(%x: tensor<1x8x7x7xf32>) {
  // CHECK: %y = trt.pooling max %x {window = array<i64: 3, 3>, stride = array<i64: 2, 2>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x3x3xf32>
  %y = trt.pooling max %x {window = array<i64: 3, 3>, stride = array<i64: 2, 2>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x3x3xf32>
  func.return
}

// CHECK-LABEL: func.func @average_of_three_axes
func.func @average_of_three_axes(%x: tensor<1x2x4x4x4xf32>) {
  // CHECK: %y = trt.pooling average %x {window = array<i64: 2, 2, 2>, average_count_excludes_padding = false} : (tensor<1x2x4x4x4xf32>) -> tensor<1x2x3x3x3xf32>
  %y = trt.pooling average %x {window = array<i64: 2, 2, 2>, average_count_excludes_padding = false} : (tensor<1x2x4x4x4xf32>) -> tensor<1x2x3x3x3xf32>
  func.return
}

// CHECK-LABEL: func.func @blend
func.func @blend(%x: tensor<2x6xf16>) {
  // CHECK: %y = trt.pooling max_average_blend %x {window = array<i64: 3>, blend_factor = 2.500000e-01 : f64} : (tensor<2x6xf16>) -> tensor<2x4xf16>
  %y = trt.pooling max_average_blend %x {window = array<i64: 3>, blend_factor = 2.500000e-01 : f64} : (tensor<2x6xf16>) -> tensor<2x4xf16>
  func.return
}

// CHECK-LABEL: func.func @rounds_up
func.func @rounds_up(%x: tensor<1x1x6xi8>) {
  // CHECK: %y = trt.pooling max %x {window = array<i64: 3>, stride = array<i64: 2>, padding_mode = #trt<padding_mode explicit_round_up>} : (tensor<1x1x6xi8>) -> tensor<1x1x3xi8>
  %y = trt.pooling max %x {window = array<i64: 3>, stride = array<i64: 2>, padding_mode = #trt<padding_mode explicit_round_up>} : (tensor<1x1x6xi8>) -> tensor<1x1x3xi8>
  func.return
}

// CHECK-LABEL: func.func @short_input
func.func @short_input(%x: tensor<1x1x?xf32, #trt.dims<["1", "1", "n"]>>) {
  // CHECK: %y = trt.pooling max %x {window = array<i64: 2>, stride = array<i64: 2>, short_input = #trt<short_input overhanging>} : (tensor<1x1x?xf32, #trt.dims<["1", "1", "n"]>>) -> tensor<1x1x?xf32, #trt.dims<["1", "1", "max((n // 2), 1)"]>>
  %y = trt.pooling max %x {window = array<i64: 2>, stride = array<i64: 2>, short_input = #trt<short_input overhanging>} : (tensor<1x1x?xf32, #trt.dims<["1", "1", "n"]>>) -> tensor<1x1x?xf32, #trt.dims<["1", "1", "max((n // 2), 1)"]>>
  func.return
}
