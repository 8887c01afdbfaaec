// RUN: rt-opt %s --split-input-file -p simplify-algebra,dce | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'simplify-algebra{fast-math=all},dce' | filecheck %s --check-prefix=ALL

// Signs need nothing.
// CHECK-LABEL: @signs
// CHECK-NEXT: [[A:%.*]] = trt.elementwise sub %x, %y
// CHECK-NEXT: [[B:%.*]] = trt.unary abs [[A]]
// CHECK-NEXT: [[C:%.*]] = trt.elementwise prod %x, [[B]]
// CHECK-NEXT: func.return [[C]]
func.func @signs(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %m = trt.unary neg %y : (tensor<64xf32>) -> tensor<64xf32>
  %a = trt.elementwise sum %m, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %n = trt.unary neg %a : (tensor<64xf32>) -> tensor<64xf32>
  %b = trt.unary abs %n : (tensor<64xf32>) -> tensor<64xf32>
  %o = trt.unary neg %b : (tensor<64xf32>) -> tensor<64xf32>
  %p = trt.unary neg %x : (tensor<64xf32>) -> tensor<64xf32>
  %c = trt.elementwise prod %p, %o : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %c : tensor<64xf32>
}

// -----

// exp(100) is infinite, and log(-1) is no number.
// CHECK-LABEL: @inverses
// CHECK: trt.unary exp %x
// CHECK-NEXT: trt.unary log
// CHECK: trt.unary log %x
// CHECK-NEXT: trt.unary exp
// ALL-LABEL: @inverses
// ALL-NEXT: func.return %x, %x
func.func @inverses(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = trt.unary exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %b = trt.unary log %a : (tensor<64xf32>) -> tensor<64xf32>
  %c = trt.unary log %x : (tensor<64xf32>) -> tensor<64xf32>
  %d = trt.unary exp %c : (tensor<64xf32>) -> tensor<64xf32>
  func.return %b, %d : tensor<64xf32>, tensor<64xf32>
}

// -----

// The logarithm of a sum of one exponential, as PyTorch writes it: what is subtracted comes back.
// ALL-LABEL: @lone_exponential
// ALL-NEXT: func.return %x
func.func @lone_exponential(%x: tensor<64x1xf32>) -> tensor<64x1xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %i = trt.unary isinf %x : (tensor<64x1xf32>) -> tensor<64x1xi1>
  %s = trt.select %i, %zero, %x : (tensor<64x1xi1>, tensor<1x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
  %d = trt.elementwise sub %x, %s : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
  %e = trt.unary exp %d : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %l = trt.unary log %e : (tensor<64x1xf32>) -> tensor<64x1xf32>
  %y = trt.elementwise sum %l, %s : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}

// -----

// Softmax subtracts the largest number of a row itself.
// CHECK-LABEL: @softmax
// CHECK-NEXT: [[Y:%.*]] = trt.softmax %x {axis = 1 : i64}
// CHECK-NEXT: func.return [[Y]]
func.func @softmax(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %m = trt.reduce max %x {axes = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %a = trt.elementwise sub %x, %m : (tensor<64x64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %y = trt.softmax %a {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %y : tensor<64x64xf32>
}

// -----

// Along the other axis the largest numbers differ, and so do the constants of the second softmax.
// CHECK-LABEL: @other_axis
// CHECK: trt.elementwise sub
// CHECK: trt.elementwise sum
func.func @other_axis(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %m = trt.reduce max %x {axes = array<i64: 0>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %a = trt.elementwise sub %x, %m : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %y = trt.softmax %a {axis = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = trt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %b = trt.elementwise sum %x, %c : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %z = trt.softmax %b {axis = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-LABEL: @zero
// CHECK: trt.elementwise prod %x
// CHECK-NOT: trt.elementwise prod %n
// ALL-LABEL: @zero
// ALL-NOT: trt.elementwise
// ALL: func.return
func.func @zero(%x: tensor<64xf32>, %n: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
  %c = trt.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
  %d = trt.constant {value = dense<0> : tensor<1xi32>} : tensor<1xi32>
  %a = trt.elementwise prod %x, %c : (tensor<64xf32>, tensor<1xf32>) -> tensor<64xf32>
  %b = trt.elementwise prod %n, %d : (tensor<64xi32>, tensor<1xi32>) -> tensor<64xi32>
  func.return %a, %b : tensor<64xf32>, tensor<64xi32>
}

// -----

// ALL-LABEL: @powers
// ALL-NEXT: [[S:%.*]] = trt.elementwise sum %x, %y
// ALL-NEXT: [[A:%.*]] = trt.unary exp [[S]]
// ALL-NEXT: [[B:%.*]] = trt.unary abs %x
// ALL-NEXT: func.return [[A]], [[B]], %y
func.func @powers(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %a = trt.unary exp %x : (tensor<4096xf32>) -> tensor<4096xf32>
  %b = trt.unary exp %y : (tensor<4096xf32>) -> tensor<4096xf32>
  %c = trt.elementwise prod %a, %b : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %d = trt.elementwise prod %x, %x : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  %e = trt.unary sqrt %d : (tensor<4096xf32>) -> tensor<4096xf32>
  %f = trt.unary sqrt %y : (tensor<4096xf32>) -> tensor<4096xf32>
  %g = trt.elementwise prod %f, %f : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  func.return %c, %e, %g : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}
