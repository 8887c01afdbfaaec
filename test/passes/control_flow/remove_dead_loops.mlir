// RUN: rt-opt %s --split-input-file -p remove-dead-loops | filecheck %s

// CHECK-LABEL: func.func @unread
// CHECK-NOT: scf.for
// CHECK: func.return %x
func.func @unread(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %u = scf.for %i = %zero to %one step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %x : tensor<4xf32>
}

// -----

// A check of the inputs counts as an effect.
// CHECK-LABEL: func.func @checking
// CHECK: scf.for
func.func @checking(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %u = scf.for %i = %zero to %one step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    trt.require %c {message = "no"} : tensor<i1>
    scf.yield %a : tensor<4xf32>
  }
  func.return %x : tensor<4xf32>
}
