// RUN: rt-opt %s --split-input-file -p fold-known-branches | filecheck %s

// CHECK-LABEL: func.func @known
// CHECK-NOT: scf.if
// CHECK: %t = trt.unary neg %x
// CHECK: func.return %t
func.func @known(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = trt.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.if %h -> (tensor<4xf32>) {
    %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @no_iteration
// CHECK-NOT: scf.for
// CHECK: func.return %x
func.func @no_iteration(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %zero step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @unknown
// CHECK: scf.if
func.func @unknown(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.if %h -> (tensor<4xf32>) {
    %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
