// RUN: rt-opt %s --split-input-file -p verify-scales --verify-diagnostics

// A tensor that is moved keeps its scale.
func.func @same(%x: tensor<2x3xf32>) -> tensor<3x4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
  %t = trt.shuffle %q {first_transpose = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  %c = trt.concatenation %t, %t {axis = 1 : i64} : (tensor<3x2xi8>, tensor<3x2xi8>) -> tensor<3x4xi8>
  %y = trt.dequantize %c, %s : (tensor<3x4xi8>, tensor<f32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----

func.func @misread(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = trt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %q = trt.quantize %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  // expected-error@+1 {{integers made with scale 0.5 and zero point 0 meet those with scale 0.25 and zero point 0}}
  %y = trt.dequantize %q, %t : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @joined(%x: tensor<4xf32>) -> tensor<8xi8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = trt.constant {value = dense<3> : tensor<i8>} : tensor<i8>
  %a = trt.quantize %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  %b = trt.quantize %x, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  // expected-error@+1 {{integers made with scale 0.5 and zero point 0 meet those with scale 0.5 and zero point 3}}
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<4xi8>, tensor<4xi8>) -> tensor<8xi8>
  func.return %y : tensor<8xi8>
}
