// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @convolution_c1(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf16>) {
  // expected-error@+1 {{C1: trt.convolution needs operands of one element type, but they are f32 and f16}}
  %y = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf16>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

func.func @convolution_c2(%x: tensor<1x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error@+1 {{C2: the kernel of trt.convolution has rank 2, expected 3, 4 or 5}}
  %y = trt.convolution %x, %w : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @convolution_c2_dynamic(%x: tensor<1x3x8x8xf32>, %w: tensor<?x3x2x2xf32>) {
  // expected-error@+1 {{C2: the kernel of trt.convolution needs constant dimensions, not tensor<?x3x2x2xf32>}}
  %y = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<?x3x2x2xf32>) -> tensor<1x?x7x7xf32>
  func.return
}

// -----

func.func @convolution_c3(%x: tensor<3x8x8xf32>, %w: tensor<4x3x2x2xf32>) {
  // expected-error@+1 {{C3: the input of trt.convolution has rank 3, its kernel needs at least 4}}
  %y = trt.convolution %x, %w : (tensor<3x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<4x7x7xf32>
  func.return
}

// -----

func.func @convolution_c4(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf32>) {
  // expected-error@+1 {{C4: stride of trt.convolution has 1 entries, the window has 2 axes}}
  %y = trt.convolution %x, %w {stride = array<i64: 2>} : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<1x4x4x4xf32>
  func.return
}

// -----

func.func @convolution_c4_positive(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf32>) {
  // expected-error@+1 {{C4: window, stride and dilation of trt.convolution are positive}}
  %y = trt.convolution %x, %w {dilation = array<i64: 0, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<1x4x8x7xf32>
  func.return
}

// -----

func.func @convolution_c5(%x: tensor<1x3x8x8xf32>, %w: tensor<4x1x2x2xf32>) {
  // expected-error@+1 {{C5: 3 groups of trt.convolution do not divide its 4 kernels}}
  %y = trt.convolution %x, %w {num_groups = 3 : i64} : (tensor<1x3x8x8xf32>, tensor<4x1x2x2xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

func.func @convolution_c6(%x: tensor<1x3x8x8xf32>, %w: tensor<4x2x2x2xf32>) {
  // expected-error@+1 {{C6: channels of trt.convolution: expected 2, got 3}}
  %y = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x2x2x2xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

func.func @convolution_c7(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{C7: the bias of trt.convolution has shape [3], expected [4]}}
  %y = trt.convolution %x, %w, %b : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>, tensor<3xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

func.func @convolution_c8(%x: tensor<1x3x2x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{C8: the window of trt.convolution reaches 3 cells, but spatial axis 0 with its pads has only 2}}
  %y = trt.convolution %x, %w : (tensor<1x3x2x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x0x6xf32>
  func.return
}

// -----

func.func @convolution_c1_bytes(%x: tensor<1x3x8x8xi8>, %w: tensor<4x3x2x2xui8>) {
  // expected-error@+1 {{C1: trt.convolution needs operands of one element type, but they are i8 and ui8}}
  %y = trt.convolution %x, %w : (tensor<1x3x8x8xi8>, tensor<4x3x2x2xui8>) -> tensor<1x4x7x7xi32>
  func.return
}

// -----

func.func @convolution_c1_bias_of_int8(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x2x2xi8>, %b: tensor<4xf32>) {
  // expected-error@+1 {{C1: the bias of trt.convolution in int8 needs element type i32, not f32}}
  %y = trt.convolution %x, %w, %b : (tensor<1x3x8x8xui8>, tensor<4x3x2x2xi8>, tensor<4xf32>) -> tensor<1x4x7x7xi32>
  func.return
}

// -----

func.func @convolution_result_of_int8(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x2x2xi8>) {
  // expected-error@+1 {{the result type should be tensor<1x4x7x7xi32>, but it is tensor<1x4x7x7xi8>}}
  %y = trt.convolution %x, %w : (tensor<1x3x8x8xui8>, tensor<4x3x2x2xi8>) -> tensor<1x4x7x7xi8>
  func.return
}

// -----

func.func @convolution_c9(%x: tensor<1x3x8x8xi8>, %w: tensor<4x3x2x2xi8>) {
  // expected-error@+1 {{C9: padding_value 128 of trt.convolution is no cell of an i8 input; only bytes have others than 0}}
  %y = trt.convolution %x, %w {padding_value = 128 : i64} : (tensor<1x3x8x8xi8>, tensor<4x3x2x2xi8>) -> tensor<1x4x7x7xi32>
  func.return
}

// -----

func.func @convolution_c9_of_floats(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x2x2xf32>) {
  // expected-error@+1 {{C9: padding_value 1 of trt.convolution is no cell of an f32 input; only bytes have others than 0}}
  %y = trt.convolution %x, %w {padding_value = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<1x4x7x7xf32>
  func.return
}
