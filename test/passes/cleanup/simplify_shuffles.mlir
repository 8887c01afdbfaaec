// RUN: rt-opt %s --split-input-file -p simplify-shuffles,fold-constants,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @transposes_cancel
// CHECK-NEXT: [[Y:%.*]] = trt.activation relu %x
// CHECK-NEXT: func.return [[Y]]
func.func @transposes_cancel(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %a = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %b = trt.activation relu %a : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %y = trt.shuffle %b {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  func.return %y : tensor<2x3x4xf32>
}

// -----

// CHECK-LABEL: @transposes_compose
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle %x {zero_is_placeholder = false, first_transpose = array<i64: 2, 0, 1>}
// CHECK-SAME: loc(fused["first", "second"])
func.func @transposes_compose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %a = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32> loc("first")
  %y = trt.shuffle %a {first_transpose = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32> loc("second")
  func.return %y : tensor<4x2x3xf32>
}

// -----

// CHECK-LABEL: @reshapes_compose
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle %x {{.*}}reshape_dims = #trt.dims<["4", "6"]>
// CHECK-NEXT: func.return [[Y]]
func.func @reshapes_compose(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %a = trt.shuffle %x {reshape_dims = #trt.dims<["-1"]>} : (tensor<2x3x4xf32>) -> tensor<24xf32>
  %y = trt.shuffle %a {reshape_dims = #trt.dims<["4", "6"]>} : (tensor<24xf32>) -> tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: @axes_of_length_one
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle %x {{.*}}reshape_dims = #trt.dims<["2", "4", "1"]>
// CHECK-NEXT: func.return [[Y]]
func.func @axes_of_length_one(%x: tensor<2x1x4xf32>) -> tensor<2x4x1xf32> {
  %y = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x1x4xf32>) -> tensor<2x4x1xf32>
  func.return %y : tensor<2x4x1xf32>
}

// -----

// A transposition between two reshapes is real work.
// CHECK-LABEL: @transposition_between_reshapes
// CHECK: trt.shuffle
// CHECK: trt.shuffle
func.func @transposition_between_reshapes(%x: tensor<2x12xf32>) -> tensor<24xf32> {
  %a = trt.shuffle %x {reshape_dims = #trt.dims<["2", "3", "4"]>, second_transpose = array<i64: 0, 2, 1>} : (tensor<2x12xf32>) -> tensor<2x4x3xf32>
  %b = trt.shuffle %a {reshape_dims = #trt.dims<["4", "6"]>, second_transpose = array<i64: 1, 0>} : (tensor<2x4x3xf32>) -> tensor<6x4xf32>
  %y = trt.shuffle %b {reshape_dims = #trt.dims<["24"]>} : (tensor<6x4xf32>) -> tensor<24xf32>
  func.return %y : tensor<24xf32>
}

// -----

// CHECK-LABEL: @into_matrix_product
// CHECK-NEXT: trt.matrix_multiply %x, %w {{.*}}rhs_op = #trt<matrix_operation transpose>
// CHECK-SAME: loc(fused["transpose", "product"])
func.func @into_matrix_product(%x: tensor<1x2x3xf32>, %w: tensor<1x4x3xf32>) -> tensor<1x2x4xf32> {
  %t = trt.shuffle %w {first_transpose = array<i64: 0, 2, 1>} : (tensor<1x4x3xf32>) -> tensor<1x3x4xf32> loc("transpose")
  %y = trt.matrix_multiply %x, %t : (tensor<1x2x3xf32>, tensor<1x3x4xf32>) -> tensor<1x2x4xf32> loc("product")
  func.return %y : tensor<1x2x4xf32>
}

// -----

// A matrix product cannot transpose a batch axis.
// CHECK-LABEL: @batch_transposition
// CHECK: trt.shuffle
func.func @batch_transposition(%x: tensor<3x2x3xf32>, %w: tensor<4x3x3xf32>) -> tensor<3x2x3xf32> {
  %t = trt.shuffle %w {first_transpose = array<i64: 1, 2, 0>} : (tensor<4x3x3xf32>) -> tensor<3x3x4xf32>
  %s = trt.slice %t {start = #trt.dims<["0", "0", "0"]>, size = #trt.dims<["3", "3", "3"]>, stride = array<i64: 1, 1, 1>} : (tensor<3x3x4xf32>) -> tensor<3x3x3xf32>
  %y = trt.matrix_multiply %x, %s : (tensor<3x2x3xf32>, tensor<3x3x3xf32>) -> tensor<3x2x3xf32>
  func.return %y : tensor<3x2x3xf32>
}

// -----

// Channels-last layers around a sum, softmax, padding and a reduction: only the axes change.
// CHECK-LABEL: @sinks
// CHECK-NOT: trt.shuffle
// CHECK: [[C:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<1x3x1xf32>}
// CHECK: [[A:%.*]] = trt.elementwise sum %x, [[C]]
// CHECK: [[S:%.*]] = trt.softmax [[A]] {axis = 1 : i64}
// CHECK: [[P:%.*]] = trt.padding [[S]] {pre = array<i64: 0, 2, 1>, post = array<i64: 0, 0, 0>
// CHECK: [[R:%.*]] = trt.reduce max [[P]] {axes = array<i64: 2>}
// CHECK: trt.shuffle [[R]]
func.func @sinks(%x: tensor<2x3x4xf32>) -> tensor<2x1x5xf32> {
  %c = trt.constant {value = dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>} : tensor<1x1x3xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %a = trt.elementwise sum %t, %c : (tensor<2x4x3xf32>, tensor<1x1x3xf32>) -> tensor<2x4x3xf32>
  %s = trt.softmax %a {axis = 2 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %p = trt.padding %s {pre = array<i64: 0, 1, 2>, post = array<i64: 0, 0, 0>} : (tensor<2x4x3xf32>) -> tensor<2x5x5xf32>
  %y = trt.reduce max %p {axes = array<i64: 1>} : (tensor<2x5x5xf32>) -> tensor<2x1x5xf32>
  func.return %y : tensor<2x1x5xf32>
}

// -----

// What is left behind a reduction may only move an axis of length 1; it keeps the name of the transposition.
// CHECK-LABEL: @becomes_a_reshape
// CHECK-NEXT: [[R:%.*]] = trt.reduce sum %x {axes = array<i64: 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32> loc("reduced")
// CHECK-NEXT: trt.shuffle [[R]] {{.*}}reshape_dims = #trt.dims<["2", "4", "5", "1"]>} : {{.*}} loc("moved")
func.func @becomes_a_reshape(%x: tensor<2x3x4x5xf32>) -> tensor<2x4x5x1xf32> {
  %t = trt.shuffle %x {first_transpose = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("moved")
  %y = trt.reduce sum %t {axes = array<i64: 3>} : (tensor<2x4x5x3xf32>) -> tensor<2x4x5x1xf32> loc("reduced")
  func.return %y : tensor<2x4x5x1xf32>
}

// -----

// A transposition with another reader stays where it is.
// CHECK-LABEL: @two_readers
// CHECK-NEXT: trt.shuffle %x
// CHECK-NEXT: trt.activation relu
func.func @two_readers(%x: tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %a = trt.activation relu %t : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %t, %a : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The heads of an attention: the transposition passes a reshape that keeps its axes apart, and the product takes the swap.
// CHECK-LABEL: @heads
// CHECK-NEXT: [[K:%.*]] = trt.shuffle %k {{.*}}first_transpose = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: trt.matrix_multiply %q, [[K]] {rhs_op = #trt<matrix_operation transpose>}
func.func @heads(%q: tensor<2x12x7x8xf32>, %k: tensor<2x5x12x8xf32>) -> tensor<2x12x7x5xf32> {
  %a = trt.shuffle %k {first_transpose = array<i64: 0, 2, 1, 3>} : (tensor<2x5x12x8xf32>) -> tensor<2x12x5x8xf32>
  %b = trt.shuffle %a {reshape_dims = #trt.dims<["24", "5", "8"]>} : (tensor<2x12x5x8xf32>) -> tensor<24x5x8xf32>
  %c = trt.shuffle %b {first_transpose = array<i64: 0, 2, 1>} : (tensor<24x5x8xf32>) -> tensor<24x8x5xf32>
  %d = trt.shuffle %c {reshape_dims = #trt.dims<["2", "12", "8", "5"]>} : (tensor<24x8x5xf32>) -> tensor<2x12x8x5xf32>
  %y = trt.matrix_multiply %q, %d : (tensor<2x12x7x8xf32>, tensor<2x12x8x5xf32>) -> tensor<2x12x7x5xf32>
  func.return %y : tensor<2x12x7x5xf32>
}

// -----

// A reshape passes a layer whose other operand is one number, whatever its rank.
// CHECK-LABEL: @reshape_sinks
// CHECK: [[C:%.*]] = trt.constant {{.*}} : tensor<1x1xf32>
// CHECK: [[A:%.*]] = trt.elementwise prod %x, [[C]] : {{.*}} -> tensor<2x6xf32>
// CHECK: trt.shuffle [[A]] {{.*}}reshape_dims = #trt.dims<["12"]>
func.func @reshape_sinks(%x: tensor<2x6xf32>) -> tensor<12xf32> {
  %half = trt.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>
  %r = trt.shuffle %x {reshape_dims = #trt.dims<["-1"]>} : (tensor<2x6xf32>) -> tensor<12xf32>
  %y = trt.elementwise prod %r, %half : (tensor<12xf32>, tensor<1xf32>) -> tensor<12xf32>
  func.return %y : tensor<12xf32>
}
