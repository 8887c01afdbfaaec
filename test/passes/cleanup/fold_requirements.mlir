// RUN: rt-opt %s --split-input-file --verify-diagnostics -p fold-requirements,dce | filecheck %s

// CHECK-LABEL: @holds
// CHECK-NEXT: [[Y:%.*]] = trt.unary neg %x
// CHECK-NEXT: func.return [[Y]]
func.func @holds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = trt.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  trt.require %c {message = "two of them"} : tensor<i1>
  %y = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: @only_the_run_knows
// CHECK: trt.require %c
func.func @only_the_run_knows(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  trt.require %c {message = "two of them"} : tensor<i1>
  func.return %x : tensor<4xf32>
}

// -----

// Not every run comes to a branch.
// CHECK-LABEL: @in_a_branch
// CHECK: trt.require
func.func @in_a_branch(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %never = trt.constant {value = dense<false> : tensor<i1>} : tensor<i1>
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.if %h -> (tensor<4xf32>) {
    trt.require %never {message = "nothing comes here"} : tensor<i1>
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
