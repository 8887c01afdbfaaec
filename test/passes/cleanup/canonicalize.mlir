// RUN: rt-opt %s --split-input-file -p canonicalize,dce | filecheck %s

// CHECK-LABEL: @neutral_operands
// CHECK-NEXT: func.return %x : tensor<2x3xf32>
func.func @neutral_operands(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %one = trt.constant {value = dense<1.0> : tensor<2x3xf32>} : tensor<2x3xf32>
  %a = trt.elementwise sum %zero, %x : (tensor<1x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = trt.elementwise prod %a, %one : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = trt.elementwise sub %b, %zero : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  func.return %c : tensor<2x3xf32>
}

// -----

// The neutral operand also repeats the other one, and 0 - x is not x.
// CHECK-LABEL: @operands_that_change_something
// CHECK: trt.elementwise sum
// CHECK: trt.elementwise sub
func.func @operands_that_change_something(%x: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<2x3xf32>} : tensor<2x3xf32>
  %a = trt.elementwise sum %x, %zero : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = trt.elementwise sub %zero, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %b : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @powers
// CHECK-NEXT: [[SQUARE:%.*]] = trt.elementwise prod %x, %x
// CHECK-NEXT: [[PART:%.*]] = trt.unary recip [[SQUARE]]
// CHECK-NEXT: func.return [[PART]]
func.func @powers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = trt.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %minus = trt.constant {value = dense<-1.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise pow %x, %two : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %b = trt.elementwise pow %a, %minus : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// The power of minus infinity is infinity, its square root no number; that of -0.0 has its sign.
// CHECK-LABEL: @power_of_a_half
// CHECK: trt.elementwise pow
func.func @power_of_a_half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = trt.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise pow %x, %half : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// CHECK-LABEL: @clips
// CHECK-NEXT: [[Y:%.*]] = trt.activation clip %x {beta = 6.000000e+00 : f64}
// CHECK-NEXT: func.return [[Y]]
func.func @clips(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = trt.activation clip %b {alpha = 0.0 : f64, beta = 6.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %d = trt.activation relu %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// A clip that reaches below 0 does not swallow the relu before it.
// CHECK-LABEL: @clip_below_zero
// CHECK: trt.activation relu
// CHECK: trt.activation clip
func.func @clip_below_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation clip %a {alpha = -1.0 : f64, beta = 6.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// CHECK-LABEL: @exact_conversion
// CHECK-NEXT: func.return %x
func.func @exact_conversion(%x: tensor<4xf16>) -> tensor<4xf16> {
  %a = trt.identity %x : (tensor<4xf16>) -> tensor<4xf32>
  %b = trt.identity %a : (tensor<4xf32>) -> tensor<4xf16>
  func.return %b : tensor<4xf16>
}

// -----

// CHECK-LABEL: @lossy_conversion
// CHECK: trt.identity
// CHECK: trt.identity
func.func @lossy_conversion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.identity %x : (tensor<4xf32>) -> tensor<4xf16>
  %b = trt.identity %a : (tensor<4xf16>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// CHECK-LABEL: @moves_of_nothing
// CHECK-NEXT: func.return %x
func.func @moves_of_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = trt.shuffle %x {reshape_dims = #trt.dims<["0", "-1"]>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = trt.slice %a {start = #trt.dims<["0", "0"]>, size = #trt.dims<["2", "3"]>, stride = array<i64: 1, 1>}
       : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = trt.padding %b {pre = array<i64: 0, 0>, post = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = trt.concatenation %c {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = trt.reduce sum %d {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %e : tensor<2x3xf32>
}

// -----

// A slice that reverses keeps the dimensions, not the elements.
// CHECK-LABEL: @reversal
// CHECK: trt.slice
func.func @reversal(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = trt.slice %x {start = #trt.dims<["2"]>, size = #trt.dims<["3"]>, stride = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// CHECK-LABEL: @requantization
// CHECK-NEXT: func.return %q
func.func @requantization(%q: tensor<4xi8>, %s: tensor<f32>) -> tensor<4xi8> {
  %x = trt.dequantize %q, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.quantize %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}

// -----

// CHECK-LABEL: @other_scale
// CHECK: trt.quantize
func.func @other_scale(%q: tensor<4xi8>, %s: tensor<f32>, %t: tensor<f32>) -> tensor<4xi8> {
  %x = trt.dequantize %q, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.quantize %x, %t : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}

// -----

// CHECK-LABEL: @known_choice
// CHECK-NEXT: func.return %b
func.func @known_choice(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %no = trt.constant {value = dense<false> : tensor<1xi1>} : tensor<1xi1>
  %y = trt.select %no, %a, %b : (tensor<1xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Resampling rounds once, so that the way through float32 changes nothing.
// CHECK-LABEL: @stays_narrow
// CHECK-NEXT: [[Y:%.*]] = trt.resize linear %x {{.*}} : (tensor<1x1x4x4xf16>) -> tensor<1x1x8x8xf16>
// CHECK-NEXT: func.return [[Y]]
func.func @stays_narrow(%x: tensor<1x1x4x4xf16>) -> tensor<1x1x8x8xf16> {
  %w = trt.identity %x : (tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf32>
  %r = trt.resize linear %w {output_dims = #trt.dims<["1", "1", "8", "8"]>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x8x8xf32>
  %y = trt.identity %r : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf16>
  func.return %y : tensor<1x1x8x8xf16>
}

// -----

// The result in float32 has another reader; a function is computed in float32 for the sake of its precision.
// CHECK-LABEL: @stays_wide
// CHECK: trt.resize linear {{.*}} -> tensor<1x1x8x8xf32>
// CHECK: trt.unary exp {{.*}} -> tensor<1x1x4x4xf32>
func.func @stays_wide(%x: tensor<1x1x4x4xf16>) -> (tensor<1x1x8x8xf16>, tensor<1x1x8x8xf32>, tensor<1x1x4x4xf16>) {
  %w = trt.identity %x : (tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf32>
  %r = trt.resize linear %w {output_dims = #trt.dims<["1", "1", "8", "8"]>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x8x8xf32>
  %y = trt.identity %r : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf16>
  %e = trt.unary exp %w : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %z = trt.identity %e : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf16>
  func.return %y, %r, %z : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf32>, tensor<1x1x4x4xf16>
}

// -----

// The largest of three tensors needs no tensor that holds all of them.
// CHECK-LABEL: @stacked
// CHECK-NEXT: [[AB:%.*]] = trt.elementwise max %a, %b : (tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
// CHECK-NEXT: [[ABC:%.*]] = trt.elementwise max [[AB]], %c
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle [[ABC]] {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: func.return [[Y]]
func.func @stacked(%a: tensor<2x1x3xf32>, %b: tensor<2x1x3xf32>, %c: tensor<2x1x3xf32>) -> tensor<2x3xf32> {
  %s = trt.concatenation %a, %b, %c {axis = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  %y = trt.reduce max %s {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// Another part has two rows, another axis is reduced, or the stack is also read by somebody else.
// CHECK-LABEL: @no_stacks
// CHECK: trt.reduce max
// CHECK: trt.reduce max
// CHECK: trt.reduce max
func.func @no_stacks(%a: tensor<2x1x3xf32>, %b: tensor<2x2x3xf32>) -> (tensor<2x1x3xf32>, tensor<2x2x1xf32>, tensor<2x1x3xf32>, tensor<2x2x3xf32>) {
  %s = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x2x3xf32>) -> tensor<2x3x3xf32>
  %x = trt.reduce max %s {axes = array<i64: 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %t = trt.concatenation %a, %a {axis = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x2x3xf32>
  %y = trt.reduce max %t {axes = array<i64: 2>} : (tensor<2x2x3xf32>) -> tensor<2x2x1xf32>
  %u = trt.concatenation %x, %a {axis = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x2x3xf32>
  %z = trt.reduce max %u {axes = array<i64: 1>} : (tensor<2x2x3xf32>) -> tensor<2x1x3xf32>
  func.return %x, %y, %z, %u : tensor<2x1x3xf32>, tensor<2x2x1xf32>, tensor<2x1x3xf32>, tensor<2x2x3xf32>
}

// -----

// Probabilities that somebody else reads as well are computed anyway.
// CHECK-LABEL: @log_of_softmax
// CHECK-NEXT: [[A:%.*]] = trt.softmax %x {axis = 1 : i64, log = true}
// CHECK-NEXT: [[P:%.*]] = trt.softmax %y {axis = 1 : i64}
// CHECK-NEXT: [[B:%.*]] = trt.unary log [[P]]
// CHECK-NEXT: func.return [[A]], [[P]], [[B]]
func.func @log_of_softmax(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %s = trt.softmax %x {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %a = trt.unary log %s : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %p = trt.softmax %y {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = trt.unary log %p : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %a, %p, %b : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Each result of a reduction over axes of length 1 is its only element; axes that only a run knows stay.
// CHECK-LABEL: @unit_reduction
// CHECK-NEXT: [[D:%.*]] = trt.shuffle %y {reshape_dims = #trt.dims<["2", "3"]>, zero_is_placeholder = false}
// CHECK-NEXT: [[N:%.*]] = trt.reduce max %z {axes = array<i64: 0>}
// CHECK-NEXT: [[P:%.*]] = trt.reduce sum %y {axes = array<i64: 1, 2>}
// CHECK-NEXT: func.return %x, [[D]], [[N]], [[P]]
func.func @unit_reduction(%x: tensor<2x1xf32>, %y: tensor<2x1x3xi8>, %z: tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> (tensor<2x1xf32>, tensor<2x3xi8>, tensor<1x4xf32>, tensor<2x1x1xi8>) {
  %a = trt.reduce avg %x {axes = array<i64: 1>} : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %b = trt.reduce prod %y {axes = array<i64: 1>, keep_dims = false} : (tensor<2x1x3xi8>) -> tensor<2x3xi8>
  %c = trt.reduce max %z {axes = array<i64: 0>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<1x4xf32>
  %d = trt.reduce sum %y {axes = array<i64: 1, 2>} : (tensor<2x1x3xi8>) -> tensor<2x1x1xi8>
  func.return %a, %b, %c, %d : tensor<2x1xf32>, tensor<2x3xi8>, tensor<1x4xf32>, tensor<2x1x1xi8>
}

// -----

// A convolution of no channels is its bias; of a length that only a run knows it stays.
// CHECK-LABEL: @no_channels
// CHECK: [[Z:%.*]] = trt.constant {value = dense<0.000000e+00> : tensor<2x3x4x4xf32>}
// CHECK-NEXT: [[B:%.*]] = trt.shuffle %b {reshape_dims = #trt.dims<["1", "3", "1", "1"]>
// CHECK-NEXT: [[S:%.*]] = trt.elementwise sum [[Z]], [[B]]
// CHECK: [[C:%.*]] = trt.convolution %y
// CHECK: func.return [[S]], [[C]]
func.func @no_channels(%x: tensor<2x0x6x6xf32>, %y: tensor<?x0x6x6xf32, #trt.dims<["n", "0", "6", "6"]>>, %w: tensor<3x0x3x3xf32>, %b: tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<?x3x4x4xf32, #trt.dims<["n", "3", "4", "4"]>>) {
  %0 = trt.convolution %x, %w, %b : (tensor<2x0x6x6xf32>, tensor<3x0x3x3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>
  %1 = trt.convolution %y, %w : (tensor<?x0x6x6xf32, #trt.dims<["n", "0", "6", "6"]>>, tensor<3x0x3x3xf32>) -> tensor<?x3x4x4xf32, #trt.dims<["n", "3", "4", "4"]>>
  func.return %0, %1 : tensor<2x3x4x4xf32>, tensor<?x3x4x4xf32, #trt.dims<["n", "3", "4", "4"]>>
}

// -----

// Indices that are repeated along whole rows are one for each row.
// CHECK-LABEL: @scatter_of_rows
func.func @scatter_of_rows(%x: tensor<5x8x2xf32>, %i: tensor<7x1x1xi64>, %u: tensor<7x8x2xf32>) -> tensor<5x8x2xf32> {
  // CHECK: [[I:%.*]] = trt.shuffle %i {reshape_dims = #trt.dims<["7", "1"]>
  // CHECK-NEXT: trt.scatter %x, [[I]], %u {mode = #trt<scatter_mode nd>, reduction = #trt<scatter_reduction add>} : (tensor<5x8x2xf32>, tensor<7x1xi64>, tensor<7x8x2xf32>)
  %r = trt.slice %i {start = #trt.dims<["0", "0", "0"]>, size = #trt.dims<["7", "8", "2"]>, stride = array<i64: 1, 0, 0>} : (tensor<7x1x1xi64>) -> tensor<7x8x2xi64>
  %y = trt.scatter %x, %r, %u {reduction = #trt<scatter_reduction add>} : (tensor<5x8x2xf32>, tensor<7x8x2xi64>, tensor<7x8x2xf32>) -> tensor<5x8x2xf32>
  func.return %y : tensor<5x8x2xf32>
}

// -----

// Parts of rows, other axes and indices of their own for each column stay as they are.
// CHECK-LABEL: @scatter_of_elements
func.func @scatter_of_elements(%x: tensor<5x8xf32>, %i: tensor<7x1xi64>, %u: tensor<7x6xf32>, %j: tensor<5x1xi64>, %v: tensor<5x3xf32>, %k: tensor<1x8xi64>, %w: tensor<7x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>) {
  // CHECK-COUNT-3: trt.slice
  // CHECK-NOT: scatter_mode nd
  %r = trt.slice %i {start = #trt.dims<["0", "0"]>, size = #trt.dims<["7", "6"]>, stride = array<i64: 1, 0>} : (tensor<7x1xi64>) -> tensor<7x6xi64>
  %a = trt.scatter %x, %r, %u {reduction = #trt<scatter_reduction add>} : (tensor<5x8xf32>, tensor<7x6xi64>, tensor<7x6xf32>) -> tensor<5x8xf32>
  %s = trt.slice %j {start = #trt.dims<["0", "0"]>, size = #trt.dims<["5", "3"]>, stride = array<i64: 1, 0>} : (tensor<5x1xi64>) -> tensor<5x3xi64>
  %b = trt.scatter %x, %s, %v {axis = 1 : i64, reduction = #trt<scatter_reduction add>} : (tensor<5x8xf32>, tensor<5x3xi64>, tensor<5x3xf32>) -> tensor<5x8xf32>
  %t = trt.slice %k {start = #trt.dims<["0", "0"]>, size = #trt.dims<["7", "8"]>, stride = array<i64: 0, 1>} : (tensor<1x8xi64>) -> tensor<7x8xi64>
  %c = trt.scatter %x, %t, %w {reduction = #trt<scatter_reduction add>} : (tensor<5x8xf32>, tensor<7x8xi64>, tensor<7x8xf32>) -> tensor<5x8xf32>
  func.return %a, %b, %c : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
}
