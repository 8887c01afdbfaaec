// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,eliminate-dead-layers | filecheck %s

// CHECK-LABEL: @unread
// CHECK-NEXT: func.return %x
func.func @unread(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = trt.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %a = trt.elementwise sum %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = trt.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// -----

// CHECK-LABEL: @copies
// CHECK-NEXT: [[Y:%.*]] = fused.view %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: func.return [[Y]]
func.func @copies(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %a = trt.shuffle %x {reshape_dims = #trt.dims<["6"]>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %b = trt.concatenation %a {axis = 0 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  %c = trt.slice %b {start = #trt.dims<["0"]>, size = #trt.dims<["6"]>, stride = array<i64: 1>} : (tensor<6xf32>) -> tensor<6xf32>
  %y = trt.shuffle %c {reshape_dims = #trt.dims<["3", "2"]>} : (tensor<6xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// A transposition of a square, a slice and a conversion are no copies.
// CHECK-LABEL: @moves
// CHECK-COUNT-3: fused.pointwise
func.func @moves(%x: tensor<3x3xf32>) -> tensor<2x3xf16> {
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %s = trt.slice %t {start = #trt.dims<["1", "0"]>, size = #trt.dims<["2", "3"]>, stride = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<2x3xf32>
  %y = trt.identity %s : (tensor<2x3xf32>) -> tensor<2x3xf16>
  func.return %y : tensor<2x3xf16>
}
