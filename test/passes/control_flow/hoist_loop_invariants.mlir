// RUN: rt-opt %s --split-input-file -p hoist-loop-invariants | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %e = trt.unary exp %w
// CHECK: %f = trt.unary neg %e
// CHECK: scf.for
// CHECK: %b = trt.elementwise sum %a, %f
// A branch in the loop stays lazy.
// CHECK: scf.if
// CHECK-NEXT: %g = trt.unary sqrt %w
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i64>, %c: tensor<i1>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.for %i = %zero to %count step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    %e = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32>
    %f = trt.unary neg %e : (tensor<4xf32>) -> tensor<4xf32>
    %b = trt.elementwise sum %a, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = scf.if %h -> (tensor<4xf32>) {
      %g = trt.unary sqrt %w : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %g : tensor<4xf32>
    } else {
      scf.yield %b : tensor<4xf32>
    }
    scf.yield %d : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// A layer whose lengths only an iteration needs to be equal stays in it; one without such lengths does not.
// CHECK-LABEL: func.func @compared
// CHECK: trt.unary exp
// CHECK: scf.for
// CHECK-NEXT: trt.require_lengths
// CHECK-NEXT: trt.elementwise sum %w, %v
func.func @compared(%x: tensor<?xf32, #trt.dims<["n"]>>, %w: tensor<?xf32, #trt.dims<["n"]>>, %v: tensor<?xf32, #trt.dims<["2*(n // 2)"]>>, %u: tensor<4xf32>, %n: tensor<i64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %y = scf.for %i = %zero to %count step %one iter_args(%a = %x) -> (tensor<?xf32, #trt.dims<["n"]>>) {
    trt.require_lengths {layer = "join", relation = "equal", lengths = #trt.dims<["n", "2*(n // 2)", "1"]>, fault = ""}
    %e = trt.unary exp %u : (tensor<4xf32>) -> tensor<4xf32>
    %f = trt.elementwise sum %w, %v : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["2*(n // 2)"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
    scf.yield %f : tensor<?xf32, #trt.dims<["n"]>>
  }
  func.return
}
