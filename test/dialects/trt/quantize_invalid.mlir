// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @quantize_c1(%x: tensor<2xi32>, %s: tensor<f32>) {
  // expected-error@+1 {{C1: the input of trt.quantize needs floating-point numbers, not i32}}
  %q = trt.quantize %x, %s : (tensor<2xi32>, tensor<f32>) -> tensor<2xi8>
  func.return
}

// -----

func.func @quantize_c2(%x: tensor<2xf32>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error@+1 {{C2: the zero point of trt.quantize has type ui8, its result i8}}
  %q = trt.quantize %x, %s, %z : (tensor<2xf32>, tensor<f32>, tensor<ui8>) -> tensor<2xi8>
  func.return
}

// -----

func.func @quantize_c3(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{C3: trt.quantize with a 1-D scale needs axis}}
  %q = trt.quantize %x, %s : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @quantize_c3_length(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{C3: length of the scale of trt.quantize: expected 2, got 3}}
  %q = trt.quantize %x, %s {axis = 0 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi8>
  func.return
}

// -----

func.func @quantize_c4(%x: tensor<2xf32>, %s: tensor<2xf32>, %z: tensor<i8>) {
  // expected-error@+1 {{C4: the zero point of trt.quantize has shape [], expected that of the scale, [2]}}
  %q = trt.quantize %x, %s, %z {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<i8>) -> tensor<2xi8>
  func.return
}

// -----

func.func @dequantize_c1(%q: tensor<2xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{C1: the input of trt.dequantize needs integers, not f32}}
  %x = trt.dequantize %q, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @dequantize_c2(%q: tensor<2xi8>, %s: tensor<i8>) {
  // expected-error@+1 {{C2: the scale of trt.dequantize needs floating-point numbers, not i8}}
  %x = trt.dequantize %q, %s : (tensor<2xi8>, tensor<i8>) -> tensor<2xi8>
  func.return
}

// -----

func.func @dequantize_c3(%q: tensor<2xi8>, %s: tensor<1x2xf32>) {
  // expected-error@+1 {{C3: the scale of trt.dequantize has shape [1, 2], expected rank 0 or 1}}
  %x = trt.dequantize %q, %s : (tensor<2xi8>, tensor<1x2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @dequantize_c4(%q: tensor<2xi8>, %s: tensor<f32>, %z: tensor<1xi8>) {
  // expected-error@+1 {{C4: the zero point of trt.dequantize has shape [1], expected that of the scale, []}}
  %x = trt.dequantize %q, %s, %z : (tensor<2xi8>, tensor<f32>, tensor<1xi8>) -> tensor<2xf32>
  func.return
}
