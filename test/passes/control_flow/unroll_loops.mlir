// RUN: rt-opt %s --split-input-file -p unroll-loops{max_iterations=2} | filecheck %s

// CHECK-LABEL: func.func @two
// CHECK-NOT: scf.for
// CHECK: [[FIRST:%.*]] = trt.constant {value = dense<0> : tensor<i64>}
// CHECK: [[E:%.*]] = trt.gather %x, [[FIRST]]
// CHECK: [[B:%.*]] = trt.elementwise sum %z, [[E]]
// CHECK: [[SECOND:%.*]] = trt.constant {value = dense<1> : tensor<i64>}
// CHECK: [[F:%.*]] = trt.gather %x, [[SECOND]]
// CHECK: [[Y:%.*]] = trt.elementwise sum [[B]], [[F]]
func.func @two(%x: tensor<5x4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %y = scf.for %i = %zero to %two step %one iter_args(%a = %z) -> (tensor<4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
    %b = trt.elementwise sum %a, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @three
// CHECK: scf.for
func.func @three(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %y = scf.for %i = %zero to %three step %one iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
