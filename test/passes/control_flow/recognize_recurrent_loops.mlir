// RUN: rt-opt %s --split-input-file -p recognize-recurrent-loops,dce | filecheck %s

// CHECK-LABEL: func.func @simple
// CHECK: [[U:%.*]] = trt.shuffle %r {first_transpose = array<i64: 1, 0>}
// CHECK: [[V:%.*]] = trt.shuffle %w {first_transpose = array<i64: 1, 0>}
// CHECK: [[Y:%.*]], [[LAST:%.*]] = trt.rnn simple %x, [[U]] weights [[V]] : tensor<4x8xf32> hidden %start
// CHECK-SAME: activations = [#trt<activation_kind tanh>]
// CHECK: func.return [[LAST]]
func.func @simple(%x: tensor<5x1x8xf32>, %w: tensor<8x4xf32>, %r: tensor<4x4xf32>, %start: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %h = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<1x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<5x1x8xf32>, tensor<i64>) -> tensor<1x8xf32>
    %p = trt.matrix_multiply %e, %w : (tensor<1x8xf32>, tensor<8x4xf32>) -> tensor<1x4xf32>
    %q = trt.matrix_multiply %a, %r : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %s = trt.elementwise sum %p, %q : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %b = trt.activation tanh %s : (tensor<1x4xf32>) -> tensor<1x4xf32>
    scf.yield %b : tensor<1x4xf32>
  }
  func.return %h : tensor<1x4xf32>
}

// -----

// The loop goes on with the slices of the layer's output, from the end on, and its check is made once.
// CHECK-LABEL: func.func @reversed
// CHECK: [[FITS:%.*]] = trt.elementwise less_equal %n, %length
// CHECK: trt.require [[FITS]] {message = "too many iterations"}
// CHECK: [[PART:%.*]] = trt.slice %x {start = #trt.dims<["max(-n + 5, 0)", "0", "0"]>, size = #trt.dims<["n", "1", "4"]>
// CHECK: [[Y:%.*]], [[LAST:%.*]] = trt.rnn simple [[PART]], {{.*}} reverse = true
// CHECK: scf.for {{.*}} iter_args([[A:%.*]] = %start, [[M:%.*]] = %start)
// CHECK: [[B:%.*]] = trt.gather [[Y]],
// CHECK-NOT: trt.matrix_multiply
// CHECK: trt.elementwise max [[M]], [[B]]
// CHECK: func.return [[LAST]]
func.func @reversed(%x: tensor<5x1x4xf32>, %r: tensor<4x4xf32>, %start: tensor<1x4xf32>, %n: tensor<i64>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  trt.define_size %n {symbol = "n"} : tensor<i64>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %length = trt.constant {value = dense<5> : tensor<i64>} : tensor<i64>
  %end = trt.constant {value = dense<4> : tensor<i64>} : tensor<i64>
  %t = tensor.extract %n[] : tensor<i64>
  %steps = arith.index_cast %t : i64 to index
  %h, %m = scf.for %i = %zero to %steps step %one iter_args(%a = %start, %most = %start) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %fits = trt.elementwise less %j, %length : (tensor<i64>, tensor<i64>) -> tensor<i1>
    trt.require %fits {message = "too many iterations"} : tensor<i1>
    %back = trt.elementwise sub %end, %j : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %e = trt.gather %x, %back : (tensor<5x1x4xf32>, tensor<i64>) -> tensor<1x4xf32>
    %q = trt.matrix_multiply %a, %r : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %s = trt.elementwise sum %e, %q : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %b = trt.activation relu %s : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %c = trt.elementwise max %most, %b : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    scf.yield %b, %c : tensor<1x4xf32>, tensor<1x4xf32>
  }
  func.return %h, %m : tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// A trip count that no size tells might leave the sequence, or stop before its end.
// CHECK-LABEL: func.func @unknown_number_of_iterations
// CHECK-NOT: trt.rnn
// CHECK: trt.activation tanh
func.func @unknown_number_of_iterations(%x: tensor<5x1x4xf32>, %r: tensor<4x4xf32>, %start: tensor<1x4xf32>, %n: tensor<i64>) -> tensor<1x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tensor.extract %n[] : tensor<i64>
  %steps = arith.index_cast %t : i64 to index
  %h = scf.for %i = %zero to %steps step %one iter_args(%a = %start) -> (tensor<1x4xf32>) {
    %k = arith.index_cast %i : index to i64
    %j = tensor.from_elements %k : tensor<i64>
    %e = trt.gather %x, %j : (tensor<5x1x4xf32>, tensor<i64>) -> tensor<1x4xf32>
    %q = trt.matrix_multiply %a, %r : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %s = trt.elementwise sum %e, %q : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %b = trt.activation tanh %s : (tensor<1x4xf32>) -> tensor<1x4xf32>
    scf.yield %b : tensor<1x4xf32>
  }
  func.return %h : tensor<1x4xf32>
}
