// RUN: rt-opt %s | rt-opt | filecheck %s
// Quantisation and dequantisation.

// CHECK-LABEL: func.func @per_tensor
func.func @per_tensor(%x: tensor<2x3xf32>, %s: tensor<f32>) {
  // CHECK: %q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
  %q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
  func.return
}

// CHECK-LABEL: func.func @per_channel_unsigned
func.func @per_channel_unsigned(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %z: tensor<3xui8>) {
  // CHECK: %q = trt.quantize %x, %s, %z {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xui8>) -> tensor<2x3xui8>
  %q = trt.quantize %x, %s, %z {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xui8>) -> tensor<2x3xui8>
  func.return
}

// CHECK-LABEL: func.func @dequantize_to_half
func.func @dequantize_to_half(%q: tensor<2x3xi32>, %s: tensor<2xf16>) {
  // CHECK: %x = trt.dequantize %q, %s {axis = 0 : i64} : (tensor<2x3xi32>, tensor<2xf16>) -> tensor<2x3xf16>
  %x = trt.dequantize %q, %s {axis = 0 : i64} : (tensor<2x3xi32>, tensor<2xf16>) -> tensor<2x3xf16>
  func.return
}
