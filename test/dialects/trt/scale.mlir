// RUN: rt-opt %s | rt-opt | filecheck %s
// Scales, shifts and powers.

// CHECK-LABEL: func.func @per_channel
func.func @per_channel(%x: tensor<1x3x4x4xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) {
  // CHECK: %y = trt.scale %x shift(%b : tensor<3xf32>) scale(%a : tensor<3xf32>) : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %y = trt.scale %x shift(%b : tensor<3xf32>) scale(%a : tensor<3xf32>) : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  func.return
}

// CHECK-LABEL: func.func @uniform
func.func @uniform(%x: tensor<4xf32>, %p: tensor<f32>) {
  // CHECK: %y = trt.scale %x power(%p : tensor<f32>) {mode = #trt<scale_mode uniform>} : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.scale %x power(%p : tensor<f32>) {mode = #trt<scale_mode uniform>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x3x4xf32>, %a: tensor<3x4xf32>) {
  // CHECK: %y = trt.scale %x scale(%a : tensor<3x4xf32>) {mode = #trt<scale_mode elementwise>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = trt.scale %x scale(%a : tensor<3x4xf32>) {mode = #trt<scale_mode elementwise>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}
