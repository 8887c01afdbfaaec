// RUN: rt-opt %s --split-input-file -p fuse-loops | filecheck %s

// CHECK-LABEL: func.func @neighbours
// CHECK: %u = trt.unary exp %y
// CHECK: %a, %b = scf.for {{.*}} iter_args([[P:%.*]] = %x, [[Q:%.*]] = %u)
// CHECK: [[NEG:%.*]] = trt.unary neg [[P]]
// CHECK: [[ABS:%.*]] = trt.unary abs [[Q]]
// CHECK: scf.yield [[NEG]], [[ABS]]
// CHECK-NOT: scf.for
func.func @neighbours(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %a = scf.for %i = %zero to %count step %one iter_args(%p = %x) -> (tensor<4xf32>) {
    %p2 = trt.unary neg %p : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %p2 : tensor<4xf32>
  }
  %u = trt.unary exp %y : (tensor<4xf32>) -> tensor<4xf32>
  %b = scf.for %i = %zero to %count step %one iter_args(%q = %u) -> (tensor<4xf32>) {
    %q2 = trt.unary abs %q : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %q2 : tensor<4xf32>
  }
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @one_after_the_other
// CHECK: %a = scf.for
// CHECK: %b = scf.for
func.func @one_after_the_other(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %a = scf.for %i = %zero to %count step %one iter_args(%p = %x) -> (tensor<4xf32>) {
    %p2 = trt.unary neg %p : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %p2 : tensor<4xf32>
  }
  %b = scf.for %i = %zero to %count step %one iter_args(%q = %a) -> (tensor<4xf32>) {
    %q2 = trt.unary abs %q : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %q2 : tensor<4xf32>
  }
  func.return %b : tensor<4xf32>
}
