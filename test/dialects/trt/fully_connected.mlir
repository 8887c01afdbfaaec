// RUN: rt-opt %s | rt-opt | filecheck %s
// Fully connected layers.

// CHECK-LABEL: func.func @with_bias
func.func @with_bias(%x: tensor<2x3x4x4xf32>, %w: tensor<10x48xf32>, %b: tensor<10xf32>) {
  // CHECK: %y = trt.fully_connected %x, %w, %b : (tensor<2x3x4x4xf32>, tensor<10x48xf32>, tensor<10xf32>) -> tensor<2x10x1x1xf32>
  %y = trt.fully_connected %x, %w, %b : (tensor<2x3x4x4xf32>, tensor<10x48xf32>, tensor<10xf32>) -> tensor<2x10x1x1xf32>
  func.return
}

// CHECK-LABEL: func.func @without_batch
func.func @without_batch(%x: tensor<3x1x1xf16>, %w: tensor<2x3xf16>) {
  // CHECK: %y = trt.fully_connected %x, %w : (tensor<3x1x1xf16>, tensor<2x3xf16>) -> tensor<2x1x1xf16>
  %y = trt.fully_connected %x, %w : (tensor<3x1x1xf16>, tensor<2x3xf16>) -> tensor<2x1x1xf16>
  func.return
}

// CHECK-LABEL: func.func @bytes
func.func @bytes(%x: tensor<2x3x4x4xui8>, %w: tensor<10x48xi8>, %b: tensor<10xi32>) {
  // CHECK: %y = trt.fully_connected %x, %w, %b : (tensor<2x3x4x4xui8>, tensor<10x48xi8>, tensor<10xi32>) -> tensor<2x10x1x1xi32>
  %y = trt.fully_connected %x, %w, %b : (tensor<2x3x4x4xui8>, tensor<10x48xi8>, tensor<10xi32>) -> tensor<2x10x1x1xi32>
  func.return
}
