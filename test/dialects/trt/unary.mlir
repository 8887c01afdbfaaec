// RUN: rt-opt %s | rt-opt | filecheck %s
// Pointwise functions.

// CHECK-LABEL: func.func @exp
func.func @exp(%x: tensor<4xf32>) {
  // CHECK: %y = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @not
func.func @not(%x: tensor<4xi1>) {
  // CHECK: %y = trt.unary not %x : (tensor<4xi1>) -> tensor<4xi1>
  %y = trt.unary not %x : (tensor<4xi1>) -> tensor<4xi1>
  func.return
}

// CHECK-LABEL: func.func @tests_give_booleans
func.func @tests_give_booleans(%x: tensor<4xf64>) {
  // CHECK: %y = trt.unary isinf_neg %x : (tensor<4xf64>) -> tensor<4xi1>
  %y = trt.unary isinf_neg %x : (tensor<4xf64>) -> tensor<4xi1>
  func.return
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<i32>) {
  // CHECK: %y = trt.unary abs %x : (tensor<i32>) -> tensor<i32>
  %y = trt.unary abs %x : (tensor<i32>) -> tensor<i32>
  func.return
}
