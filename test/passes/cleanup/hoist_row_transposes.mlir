// RUN: rt-opt %s --split-input-file -p hoist-row-transposes,dce,verify-dominance | filecheck %s

// The product that joins heads reads rows in the order that its result is wanted in; the bias is the same for all rows.
// CHECK-LABEL: @joined_heads
// CHECK: [[R:%.*]] = trt.shuffle %a {{.*}}first_transpose = array<i64: 1, 0, 2>, reshape_dims = #trt.dims<["7", "5", "6"]>, second_transpose = array<i64: 1, 0, 2>} : (tensor<15x7x2xf32>) -> tensor<5x7x6xf32>
// CHECK: [[P:%.*]] = trt.matrix_multiply [[R]], {{.*}} : (tensor<5x7x6xf32>, tensor<1x6x6xf32>) -> tensor<5x7x6xf32>
// CHECK: [[Y:%.*]] = trt.elementwise sum [[P]], {{.*}} : (tensor<5x7x6xf32>, tensor<1x1x6xf32>) -> tensor<5x7x6xf32>
// CHECK: func.return [[Y]]
func.func @joined_heads(%s: tensor<15x7x7xf32>, %v: tensor<15x7x2xf32>) -> tensor<5x7x6xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<6x6xf32>} : tensor<6x6xf32>
  %b = trt.constant {value = dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<1x6xf32>} : tensor<1x6xf32>
  %a = trt.matrix_multiply %s, %v : (tensor<15x7x7xf32>, tensor<15x7x2xf32>) -> tensor<15x7x2xf32>
  %r = trt.shuffle %a {first_transpose = array<i64: 1, 0, 2>, reshape_dims = #trt.dims<["35", "6"]>} : (tensor<15x7x2xf32>) -> tensor<35x6xf32>
  %p = trt.matrix_multiply %r, %w : (tensor<35x6xf32>, tensor<6x6xf32>) -> tensor<35x6xf32>
  %q = trt.elementwise sum %p, %b : (tensor<35x6xf32>, tensor<1x6xf32>) -> tensor<35x6xf32>
  %y = trt.shuffle %q {reshape_dims = #trt.dims<["7", "5", "6"]>, second_transpose = array<i64: 1, 0, 2>} : (tensor<35x6xf32>) -> tensor<5x7x6xf32>
  func.return %y : tensor<5x7x6xf32>
}

// -----

// Windows part the rows of attention, which no product can write in that order.
// CHECK-LABEL: @windows
// CHECK: trt.shuffle {{.*}} -> tensor<36x6xf32>
// CHECK: trt.matrix_multiply {{.*}} -> tensor<36x6xf32>
// CHECK: trt.shuffle {{.*}}second_transpose = array<i64: 0, 2, 1, 3, 4>
func.func @windows(%s: tensor<12x9x9xf32>, %v: tensor<12x9x2xf32>) -> tensor<2x3x2x3x6xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<6x6xf32>} : tensor<6x6xf32>
  %a = trt.matrix_multiply %s, %v : (tensor<12x9x9xf32>, tensor<12x9x2xf32>) -> tensor<12x9x2xf32>
  %h = trt.shuffle %a {reshape_dims = #trt.dims<["4", "3", "9", "2"]>} : (tensor<12x9x2xf32>) -> tensor<4x3x9x2xf32>
  %r = trt.shuffle %h {first_transpose = array<i64: 0, 2, 1, 3>, reshape_dims = #trt.dims<["36", "6"]>} : (tensor<4x3x9x2xf32>) -> tensor<36x6xf32>
  %p = trt.matrix_multiply %r, %w : (tensor<36x6xf32>, tensor<6x6xf32>) -> tensor<36x6xf32>
  %y = trt.shuffle %p {reshape_dims = #trt.dims<["2", "2", "3", "3", "6"]>, second_transpose = array<i64: 0, 2, 1, 3, 4>} : (tensor<36x6xf32>) -> tensor<2x3x2x3x6xf32>
  func.return %y : tensor<2x3x2x3x6xf32>
}

// -----

// A transpose of an operand's rows goes behind the product, where it meets the one into heads.
// CHECK-LABEL: @into_heads
// CHECK: [[P:%.*]] = trt.matrix_multiply %x, {{.*}} : (tensor<5x7x4xf32>, tensor<1x4x6xf32>) -> tensor<5x7x6xf32>
// CHECK: trt.shuffle [[P]] {{.*}}first_transpose = array<i64: 1, 0, 2>, reshape_dims = #trt.dims<["7", "15", "2"]>, second_transpose = array<i64: 1, 0, 2>} : (tensor<5x7x6xf32>) -> tensor<15x7x2xf32>
func.func @into_heads(%x: tensor<5x7x4xf32>) -> tensor<15x7x2xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<1x4x6xf32>} : tensor<1x4x6xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0, 2>} : (tensor<5x7x4xf32>) -> tensor<7x5x4xf32>
  %p = trt.matrix_multiply %t, %w : (tensor<7x5x4xf32>, tensor<1x4x6xf32>) -> tensor<7x5x6xf32>
  %y = trt.shuffle %p {reshape_dims = #trt.dims<["7", "15", "2"]>, second_transpose = array<i64: 1, 0, 2>} : (tensor<7x5x6xf32>) -> tensor<15x7x2xf32>
  func.return %y : tensor<15x7x2xf32>
}

// -----

// What differs from row to row keeps its place, and a reshape alone costs nothing where it is.
// CHECK-LABEL: @other_rows
// CHECK: [[T:%.*]] = trt.shuffle %x
// CHECK: trt.matrix_multiply [[T]]
// CHECK: trt.matrix_multiply [[T]]
func.func @other_rows(%x: tensor<5x7x4xf32>, %z: tensor<7x5x6xf32>) -> (tensor<15x7x2xf32>, tensor<7x30xf32>) {
  %w = trt.constant {value = dense<0.5> : tensor<1x4x6xf32>} : tensor<1x4x6xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0, 2>} : (tensor<5x7x4xf32>) -> tensor<7x5x4xf32>
  %p = trt.matrix_multiply %t, %w : (tensor<7x5x4xf32>, tensor<1x4x6xf32>) -> tensor<7x5x6xf32>
  %q = trt.elementwise sum %p, %z : (tensor<7x5x6xf32>, tensor<7x5x6xf32>) -> tensor<7x5x6xf32>
  %y = trt.shuffle %q {reshape_dims = #trt.dims<["7", "15", "2"]>, second_transpose = array<i64: 1, 0, 2>} : (tensor<7x5x6xf32>) -> tensor<15x7x2xf32>
  %o = trt.matrix_multiply %t, %w : (tensor<7x5x4xf32>, tensor<1x4x6xf32>) -> tensor<7x5x6xf32>
  %r = trt.shuffle %o {reshape_dims = #trt.dims<["7", "30"]>} : (tensor<7x5x6xf32>) -> tensor<7x30xf32>
  func.return %y, %r : tensor<15x7x2xf32>, tensor<7x30xf32>
}
