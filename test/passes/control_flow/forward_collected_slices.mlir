// RUN: rt-opt %s --split-input-file -p forward-collected-slices,remove-dead-loops,dce | filecheck %s

// CHECK-LABEL: func.func @in_order
// CHECK-NOT: scf.for
// CHECK: func.return %y
func.func @in_order(%y: tensor<5x1x4xf32>, %start: tensor<5x1x4xf32>) -> tensor<5x1x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %t = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<5x1x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %p = trt.shuffle %j {reshape_dims = #trt.dims<["1", "1"]>} : (tensor<i64>) -> tensor<1x1xi64>
    %e = trt.gather %y, %j : (tensor<5x1x4xf32>, tensor<i64>) -> tensor<1x4xf32>
    %f = trt.shuffle %e {reshape_dims = #trt.dims<["1", "1", "4"]>} : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %b = trt.scatter %a, %p, %f {mode = #trt<scatter_mode nd>} : (tensor<5x1x4xf32>, tensor<1x1xi64>, tensor<1x1x4xf32>) -> tensor<5x1x4xf32>
    scf.yield %b : tensor<5x1x4xf32>
  }
  func.return %t : tensor<5x1x4xf32>
}

// -----

// CHECK-LABEL: func.func @from_the_end
// CHECK-NOT: scf.for
// CHECK: [[T:%.*]] = trt.slice %y {start = #trt.dims<["4", "0"]>, size = #trt.dims<["5", "4"]>, stride = array<i64: -1, 1>}
// CHECK: func.return [[T]]
func.func @from_the_end(%y: tensor<5x4xf32>, %start: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %last = trt.constant {value = dense<4> : tensor<i64>} : tensor<i64>
  %t = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<5x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %back = trt.elementwise sub %last, %j : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %p = trt.shuffle %back {reshape_dims = #trt.dims<["1", "1"]>} : (tensor<i64>) -> tensor<1x1xi64>
    %e = trt.gather %y, %j : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
    %f = trt.shuffle %e {reshape_dims = #trt.dims<["1", "4"]>} : (tensor<4xf32>) -> tensor<1x4xf32>
    %b = trt.scatter %a, %p, %f {mode = #trt<scatter_mode nd>} : (tensor<5x4xf32>, tensor<1x1xi64>, tensor<1x4xf32>) -> tensor<5x4xf32>
    scf.yield %b : tensor<5x4xf32>
  }
  func.return %t : tensor<5x4xf32>
}

// -----

// What is behind the last iteration keeps its rows.
// CHECK-LABEL: func.func @longer
// CHECK: [[T:%.*]] = scf.for
// CHECK: func.return [[T]]
func.func @longer(%y: tensor<5x4xf32>, %start: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %t = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<6x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %p = trt.shuffle %j {reshape_dims = #trt.dims<["1", "1"]>} : (tensor<i64>) -> tensor<1x1xi64>
    %e = trt.gather %y, %j : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
    %f = trt.shuffle %e {reshape_dims = #trt.dims<["1", "4"]>} : (tensor<4xf32>) -> tensor<1x4xf32>
    %b = trt.scatter %a, %p, %f {mode = #trt<scatter_mode nd>} : (tensor<6x4xf32>, tensor<1x1xi64>, tensor<1x4xf32>) -> tensor<6x4xf32>
    scf.yield %b : tensor<6x4xf32>
  }
  func.return %t : tensor<6x4xf32>
}
