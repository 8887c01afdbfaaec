// RUN: rt-opt %s --split-input-file -p use-rational-activations | filecheck %s

// CHECK-LABEL: @quantised
// CHECK: trt.activation rational_sigmoid %x
// CHECK: trt.activation rational_tanh
// CHECK: trt.activation relu
// CHECK: trt.activation sigmoid %h
func.func @quantised(%x: tensor<4xf32>, %h: tensor<4xf16>) -> (tensor<4xi8>, tensor<4xf16>) {
  %s = trt.constant {value = dense<0.1> : tensor<f32>} : tensor<f32>
  %a = trt.activation sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation tanh %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = trt.activation relu %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = trt.activation sigmoid %h : (tensor<4xf16>) -> tensor<4xf16>
  %q = trt.quantize %c, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %q, %d : tensor<4xi8>, tensor<4xf16>
}

// -----

// CHECK-LABEL: @plain
// CHECK: trt.activation sigmoid
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = trt.activation sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
