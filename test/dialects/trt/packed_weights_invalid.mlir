// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @dequantize_blocks_c1(%c: tensor<5x32xui8>, %s: tensor<5x2xf32>) {
  // expected-error@+1 {{C1: trt.dequantize_blocks knows blocks of whole bytes of 2, 4 or 8 bits, not 32 of 3 bits}}
  %w = trt.dequantize_blocks %c, %s {bits = 3 : i64, block = 32 : i64, depth = 64 : i64} : (tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<5x64xf32>
  func.return
}

// -----

func.func @dequantize_blocks_c1_float4(%c: tensor<5x32xui8>, %s: tensor<5x2xf32>, %z: tensor<5x2xui8>) {
  // expected-error@+1 {{C1: 4-bit floats of trt.dequantize_blocks have 4 bits and no zero point}}
  %w = trt.dequantize_blocks %c, %s, %z {bits = 4 : i64, block = 32 : i64, depth = 64 : i64, float4} : (tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x2xui8>) -> tensor<5x64xf32>
  func.return
}

// -----

func.func @dequantize_blocks_c1_bytes(%c: tensor<5x32xi8>, %s: tensor<5x2xf32>) {
  // expected-error@+1 {{C1: the codes of trt.dequantize_blocks are bytes (ui8), not i8}}
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 64 : i64} : (tensor<5x32xi8>, tensor<5x2xf32>) -> tensor<5x64xf32>
  func.return
}

// -----

func.func @dequantize_blocks_c2(%c: tensor<5x32xui8>, %s: tensor<5x2xi32>) {
  // expected-error@+1 {{C2: the scale of trt.dequantize_blocks needs floating-point numbers, not i32}}
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 64 : i64} : (tensor<5x32xui8>, tensor<5x2xi32>) -> tensor<5x64xi32>
  func.return
}

// -----

func.func @dequantize_blocks_c3(%c: tensor<5x32xui8>, %s: tensor<5x3xf32>) {
  // expected-error@+1 {{C3: length of the scale of trt.dequantize_blocks: expected 2, got 3}}
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 64 : i64} : (tensor<5x32xui8>, tensor<5x3xf32>) -> tensor<5x64xf32>
  func.return
}

// -----

func.func @dequantize_blocks_c3_bytes(%c: tensor<5x30xui8>, %s: tensor<5x2xf32>) {
  // expected-error@+1 {{C3: bytes of a row of trt.dequantize_blocks: expected 32, got 30}}
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 60 : i64} : (tensor<5x30xui8>, tensor<5x2xf32>) -> tensor<5x60xf32>
  func.return
}

// -----

func.func @packed_matrix_multiply_c3(%x: tensor<3x64xf32>, %c: tensor<2x5x32xui8>, %s: tensor<2x5x2xf32>) {
  // expected-error@+1 {{C3: the codes of trt.packed_matrix_multiply have rank 2, [n, row bytes]}}
  %y = trt.packed_matrix_multiply %x, %c, %s {bits = 4 : i64, block = 32 : i64} : (tensor<3x64xf32>, tensor<2x5x32xui8>, tensor<2x5x2xf32>) -> tensor<3x5xf32>
  func.return
}

// -----

func.func @packed_matrix_multiply_c4(%x: tensor<3x64xi32>, %c: tensor<5x32xui8>, %s: tensor<5x2xf32>) {
  // expected-error@+1 {{C4: the input of trt.packed_matrix_multiply needs floating-point numbers, not i32}}
  %y = trt.packed_matrix_multiply %x, %c, %s {bits = 4 : i64, block = 32 : i64} : (tensor<3x64xi32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<3x5xi32>
  func.return
}
