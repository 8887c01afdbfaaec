// RUN: rt-opt %s -p hoist-input-products,dce | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[V:%.*]] = trt.shuffle %w {reshape_dims = #trt.dims<["1", "8", "3"]>}
// CHECK: [[Q:%.*]] = trt.matrix_multiply %x, [[V]] : (tensor<5x1x8xf32>, tensor<1x8x3xf32>) -> tensor<5x1x3xf32>
// CHECK: scf.for
// CHECK-NOT: trt.matrix_multiply
// CHECK: %p = trt.gather [[Q]], %j : (tensor<5x1x3xf32>, tensor<i64>) -> tensor<1x3xf32>
// CHECK: %b = trt.elementwise sum %a, %p
func.func @main(%x: tensor<5x1x8xf32>, %w: tensor<8x3xf32>, %z: tensor<1x3xf32>, %n: tensor<i64>) -> tensor<1x3xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %t : i64 to index
  %y = scf.for %i = %zero to %count step %one iter_args(%a = %z) -> (tensor<1x3xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<5x1x8xf32>, tensor<i64>) -> tensor<1x8xf32>
    %p = trt.matrix_multiply %e, %w : (tensor<1x8xf32>, tensor<8x3xf32>) -> tensor<1x3xf32>
    %b = trt.elementwise sum %a, %p : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    scf.yield %b : tensor<1x3xf32>
  }
  func.return %y : tensor<1x3xf32>
}
