// RUN: rt-opt %s --split-input-file --verify-diagnostics -p verify-precisions

module attributes {trt.obey_precisions, trt.layer_precisions = {"relu1" = "fp32"}} {
  func.func @narrower(%x: tensor<4xf16>) -> tensor<4xf16> {
    // expected-error @+1 {{computes in f16, but fp32 was asked for and must be obeyed}}
    %y = trt.activation relu %x : (tensor<4xf16>) -> tensor<4xf16> loc("relu1")
    func.return %y : tensor<4xf16>
  }
}

// -----

module attributes {trt.obey_precisions, trt.layer_precisions = {"relu1" = "fp16"}} {
  func.func @wider(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{computes in f32, but fp16 was asked for}}
    %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("relu1")
    func.return %y : tensor<4xf32>
  }
}

// -----

module attributes {trt.obey_precisions} {
  func.func @own_attribute(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>) -> tensor<2x3xf32> {
    // expected-error @+1 {{computes in f32, but int8 was asked for}}
    %y = "trt.matrix_multiply"(%x, %w) {trt.precision = "int8"} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    func.return %y : tensor<2x3xf32>
  }
}

// -----

// Joined layers are asked for the widest format; conversions and what is no int8 product are free.
module attributes {trt.obey_precisions, trt.layer_precisions = {"a" = "fp16", "b" = "fp32", "c" = "int8"}} {
  func.func @fits(%x: tensor<4xf32>) -> tensor<4xf16> {
    %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc(fused["a", "b"])
    %z = trt.activation relu %y : (tensor<4xf32>) -> tensor<4xf32> loc("c")
    %h = trt.identity %z : (tensor<4xf32>) -> tensor<4xf16> loc("b")
    func.return %h : tensor<4xf16>
  }
}
