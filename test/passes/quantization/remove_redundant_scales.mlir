// RUN: rt-opt %s --split-input-file -p remove-redundant-scales --print-debuginfo | filecheck %s

// tensorrt-features.md#26.6.
// CHECK-LABEL: @chain
// CHECK: [[D:%.*]] = trt.dequantize %x, %s, %z
// CHECK-NEXT: func.return [[D]]
func.func @chain(%x: tensor<4xui8>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.3> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<9> : tensor<ui8>} : tensor<ui8>
  %a = trt.dequantize %x, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %b = trt.quantize %a, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  %c = trt.dequantize %b, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %d = trt.quantize %c, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  %y = trt.dequantize %d, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Other scales, zero points or types are other numbers.
// CHECK-LABEL: @other_numbers
// CHECK-COUNT-3: trt.quantize
func.func @other_numbers(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xui8>) {
  %s = trt.constant {value = dense<0.3> : tensor<f32>} : tensor<f32>
  %t = trt.constant {value = dense<0.4> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<1> : tensor<i8>} : tensor<i8>
  %u = trt.constant {value = dense<0> : tensor<ui8>} : tensor<ui8>
  %d = trt.dequantize %x, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %a = trt.quantize %d, %t : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  %b = trt.quantize %d, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %c = trt.quantize %d, %s, %u : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  func.return %a, %b, %c : tensor<4xi8>, tensor<4xi8>, tensor<4xui8>
}

// -----

// uint8 without a zero point are never negative; those up to 6 = 30 * 0.2 are clipped by themselves.
// CHECK-LABEL: @bounds
// CHECK: [[Q:%.*]] = trt.quantize %x, {{.*}} loc(fused["relu", "quantize"])
// CHECK-NEXT: [[D:%.*]] = trt.dequantize [[Q]]
// CHECK-NEXT: func.return [[D]]
func.func @bounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.2> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<0> : tensor<ui8>} : tensor<ui8>
  %r = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("relu")
  %q = trt.quantize %r, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8> loc("quantize")
  %d = trt.dequantize %q, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %y = trt.activation clip %d {alpha = -0.1 : f64, beta = 51.5 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The bound 0.05 rounds to 0 with the numbers below it, but is no bound of dequantised numbers.
// CHECK-LABEL: @bounds_that_matter
// CHECK: trt.activation clip
// CHECK: trt.activation relu
func.func @bounds_that_matter(%q: tensor<4xui8>, %p: tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = trt.constant {value = dense<0.2> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<0> : tensor<ui8>} : tensor<ui8>
  %d = trt.dequantize %q, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %y = trt.activation clip %d {alpha = 0.05 : f64, beta = 99.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %e = trt.dequantize %p, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.activation relu %e : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y, %r : tensor<4xf32>, tensor<4xf32>
}
