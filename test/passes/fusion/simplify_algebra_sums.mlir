// RUN: rt-opt %s --split-input-file -p simplify-algebra,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'simplify-algebra{fast-math=reassociate,finite},dce' | filecheck %s --check-prefix=FINITE

// CHECK-LABEL: @twice
// CHECK-NEXT: [[Y:%.*]] = trt.reduce sum %x {axes = array<i64: 1, 3>
// CHECK-NEXT: [[Z:%.*]] = trt.shuffle [[Y]] {reshape_dims = #trt.dims<["8", "16"]>
// CHECK-NEXT: func.return [[Z]]
func.func @twice(%x: tensor<8x64x16x64xf32>) -> tensor<8x16xf32> {
  %a = trt.reduce sum %x {axes = array<i64: 1>, keep_dims = false} : (tensor<8x64x16x64xf32>) -> tensor<8x16x64xf32>
  %y = trt.reduce sum %a {axes = array<i64: 2>, keep_dims = false} : (tensor<8x16x64xf32>) -> tensor<8x16xf32>
  func.return %y : tensor<8x16xf32>
}

// -----

// Means of different numbers of rows are not the mean of all; neither is a sum of maxima a sum.
// CHECK-LABEL: @others
// CHECK: trt.reduce max
// CHECK-NEXT: trt.reduce sum
func.func @others(%x: tensor<64x64xf32>) -> tensor<1x1xf32> {
  %a = trt.reduce max %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %y = trt.reduce sum %a {axes = array<i64: 0>} : (tensor<64x1xf32>) -> tensor<1x1xf32>
  func.return %y : tensor<1x1xf32>
}

// -----

// A product is the same sums when it is transposed.
// CHECK-LABEL: @transposed
// CHECK-NEXT: [[Y:%.*]] = trt.matrix_multiply %b, %a {lhs_op = #trt<matrix_operation transpose>, rhs_op = #trt<matrix_operation transpose>}
// CHECK-NEXT: func.return [[Y]]
func.func @transposed(%a: tensor<2x64x32xf32>, %b: tensor<2x32x128xf32>) -> tensor<2x128x64xf32> {
  %p = trt.matrix_multiply %a, %b : (tensor<2x64x32xf32>, tensor<2x32x128xf32>) -> tensor<2x64x128xf32>
  %y = trt.shuffle %p {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x64x128xf32>) -> tensor<2x128x64xf32>
  func.return %y : tensor<2x128x64xf32>
}

// -----

// Matrices times a vector: the vector goes first. In the second function the other order has fewer products.
// CHECK-LABEL: @vector_last
// CHECK-NEXT: [[V:%.*]] = trt.matrix_multiply %b, %v
// CHECK-NEXT: [[Y:%.*]] = trt.matrix_multiply %a, [[V]]
// CHECK-NEXT: func.return [[Y]]
func.func @vector_last(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>, %v: tensor<512x1xf32>) -> tensor<512x1xf32> {
  %p = trt.matrix_multiply %a, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %y = trt.matrix_multiply %p, %v : (tensor<512x512xf32>, tensor<512x1xf32>) -> tensor<512x1xf32>
  func.return %y : tensor<512x1xf32>
}

// CHECK-LABEL: @vector_first
// CHECK-NEXT: [[V:%.*]] = trt.matrix_multiply %v, %a
// CHECK-NEXT: [[Y:%.*]] = trt.matrix_multiply [[V]], %b
// CHECK-NEXT: func.return [[Y]]
func.func @vector_first(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>, %v: tensor<1x512xf32>) -> tensor<1x512xf32> {
  %p = trt.matrix_multiply %a, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %y = trt.matrix_multiply %v, %p : (tensor<1x512xf32>, tensor<512x512xf32>) -> tensor<1x512xf32>
  func.return %y : tensor<1x512xf32>
}

// -----

// The mean of what a convolution gives is one of its input, so that the convolution subtracts it itself.
// CHECK-LABEL: @centered
// CHECK: [[C:%.*]] = trt.convolution %x
// CHECK: trt.reduce avg
// CHECK: trt.matrix_multiply
// CHECK: [[Y:%.*]] = trt.elementwise sub [[C]], {{%.*}}
// CHECK-NEXT: func.return [[Y]]
func.func @centered(%x: tensor<8x4x64x64xf32>) -> tensor<8x64x62x62xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<64x4x3x3xf32>} : tensor<64x4x3x3xf32>
  %c = trt.convolution %x, %w : (tensor<8x4x64x64xf32>, tensor<64x4x3x3xf32>) -> tensor<8x64x62x62xf32>
  %m = trt.reduce avg %c {axes = array<i64: 2, 3>} : (tensor<8x64x62x62xf32>) -> tensor<8x64x1x1xf32>
  %y = trt.elementwise sub %c, %m : (tensor<8x64x62x62xf32>, tensor<8x64x1x1xf32>) -> tensor<8x64x62x62xf32>
  func.return %y : tensor<8x64x62x62xf32>
}

// -----

// What is centered has the sum 0, unless a number is infinite or none.
// CHECK-LABEL: @nothing
// CHECK: trt.reduce avg %x
// CHECK: trt.reduce sum
// FINITE-LABEL: @nothing
// FINITE-NEXT: [[Z:%.*]] = trt.constant {value = dense<0.000000e+00> : tensor<1x1xf32>}
// FINITE-NEXT: [[Y:%.*]] = trt.broadcast [[Z]]
// FINITE-NEXT: func.return [[Y]]
func.func @nothing(%x: tensor<64x64xf32>) -> tensor<64x1xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %a = trt.elementwise sub %x, %m : (tensor<64x64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %y = trt.reduce sum %a {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}

// -----

// Beside what is centered along rows the sum of columns stays.
// FINITE-LABEL: @columns
// FINITE: trt.reduce sum
func.func @columns(%x: tensor<64x64xf32>) -> tensor<1x64xf32> {
  %m = trt.reduce avg %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %a = trt.elementwise sub %x, %m : (tensor<64x64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %y = trt.reduce sum %a {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// -----

// x - x is 0, of integers always.
// CHECK-LABEL: @itself
// CHECK: trt.elementwise sub %x, %x
// CHECK-NOT: trt.elementwise sub %n
// FINITE-LABEL: @itself
// FINITE-NOT: trt.elementwise
// FINITE: func.return
func.func @itself(%x: tensor<64xf32>, %n: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
  %a = trt.elementwise sub %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %b = trt.elementwise sub %n, %n : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  func.return %a, %b : tensor<64xf32>, tensor<64xi32>
}

// -----

// Common factors: constants always, others where no infinities meet.
// CHECK-LABEL: @factors
// CHECK: [[S:%.*]] = trt.elementwise sum %x, %y
// CHECK-NEXT: [[A:%.*]] = trt.elementwise prod [[S]], {{%.*}}
// CHECK-COUNT-2: trt.elementwise prod
// FINITE-LABEL: @factors
// FINITE-COUNT-2: trt.elementwise prod
// FINITE-NEXT: func.return
func.func @factors(%x: tensor<4096xf32>, %y: tensor<4096xf32>, %z: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %c = trt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %a = trt.elementwise prod %x, %c : (tensor<4096xf32>, tensor<1xf32>) -> tensor<4096xf32>
  %b = trt.elementwise prod %c, %y : (tensor<1xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %s = trt.elementwise sum %a, %b : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %d = trt.elementwise prod %x, %z : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %e = trt.elementwise prod %y, %z : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %t = trt.elementwise sum %d, %e : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  func.return %s, %t : tensor<4096xf32>, tensor<4096xf32>
}

// -----

// The axes that are summed are whole axes of the tensor in front, so that sums of sums meet through a reshape.
// CHECK-LABEL: @through
// CHECK-NEXT: [[M:%.*]] = trt.reduce max %x {axes = array<i64: 1, 2>}
// CHECK-NEXT: [[Y:%.*]] = trt.shuffle [[M]]
// CHECK-NEXT: func.return [[Y]]
func.func @through(%x: tensor<8x16x64xf32>) -> tensor<8x1xf32> {
  %a = trt.reduce max %x {axes = array<i64: 2>} : (tensor<8x16x64xf32>) -> tensor<8x16x1xf32>
  %b = trt.shuffle %a {reshape_dims = #trt.dims<["8", "16"]>} : (tensor<8x16x1xf32>) -> tensor<8x16xf32>
  %y = trt.reduce max %b {axes = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  func.return %y : tensor<8x1xf32>
}

// -----

// Groups of channels that are summed in part are no axes of the tensor in front.
// CHECK-LABEL: @parts
// CHECK: trt.shuffle %x
// CHECK-NEXT: trt.reduce max
func.func @parts(%x: tensor<8x16xf32>) -> tensor<8x4x1xf32> {
  %a = trt.shuffle %x {reshape_dims = #trt.dims<["8", "4", "4"]>} : (tensor<8x16xf32>) -> tensor<8x4x4xf32>
  %y = trt.reduce max %a {axes = array<i64: 2>} : (tensor<8x4x4xf32>) -> tensor<8x4x1xf32>
  func.return %y : tensor<8x4x1xf32>
}
