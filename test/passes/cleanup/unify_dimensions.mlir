// RUN: rt-opt %s --split-input-file -p unify-dimensions | filecheck %s

// The first name among the inputs stands for all of a chain, in every type and property.
// CHECK-LABEL: @chain
// CHECK-SAME: %x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %z: tensor<?x3xf32, #trt.dims<["n", "3"]>>
// CHECK-SAME: -> tensor<?xf32, #trt.dims<["9*n"]>>
// CHECK: trt.concatenation %y, %z {{.*}} -> tensor<?x6xf32, #trt.dims<["n", "6"]>>
// CHECK: trt.shuffle %b {{.*}}#trt.dims<["9*n"]>{{.*}} -> tensor<?xf32, #trt.dims<["9*n"]>>
func.func @chain(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["m", "3"]>>, %z: tensor<?x3xf32, #trt.dims<["k", "3"]>>) -> tensor<?xf32, #trt.dims<["9*m"]>> {
  %a = trt.concatenation %y, %z {axis = 1 : i64} : (tensor<?x3xf32, #trt.dims<["m", "3"]>>, tensor<?x3xf32, #trt.dims<["k", "3"]>>) -> tensor<?x6xf32, #trt.dims<["m", "6"]>>
  %b = trt.concatenation %a, %x {axis = 1 : i64} : (tensor<?x6xf32, #trt.dims<["m", "6"]>>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x9xf32, #trt.dims<["m", "9"]>>
  %c = trt.shuffle %b {reshape_dims = #trt.dims<["9*m"]>} : (tensor<?x9xf32, #trt.dims<["m", "9"]>>) -> tensor<?xf32, #trt.dims<["9*m"]>>
  func.return %c : tensor<?xf32, #trt.dims<["9*m"]>>
}

// -----

// Lengths that broadcast stay apart, as a run may make either of them 1.
// CHECK-LABEL: @broadcasts
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %c: tensor<?xi1, #trt.dims<["k"]>>
// CHECK: trt.elementwise sum {{.*}} -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
// CHECK: trt.select {{.*}} -> tensor<?xf32, #trt.dims<["broadcast(broadcast(k, m), n)"]>>
// CHECK: trt.parametric_relu {{.*}} -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
func.func @broadcasts(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %c: tensor<?xi1, #trt.dims<["k"]>>) {
  %a = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  %b = trt.select %c, %x, %y : (tensor<?xi1, #trt.dims<["k"]>>, tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["broadcast(broadcast(k, m), n)"]>>
  %d = trt.parametric_relu %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  func.return
}

// -----

// Those that must be equal to one of them are that one: a mask broadcasts to scores, whose columns are the rows of values.
// CHECK-LABEL: @mask
// CHECK-SAME: %s: tensor<2x?xf32, #trt.dims<["2", "k"]>>, %m: tensor<1x?xf32, #trt.dims<["1", "l"]>>, %v: tensor<?x4xf32, #trt.dims<["k", "4"]>>
// CHECK: trt.elementwise sum {{.*}} -> tensor<2x?xf32, #trt.dims<["2", "k"]>>
// CHECK: trt.softmax {{.*}} -> tensor<2x?xf32, #trt.dims<["2", "k"]>>
func.func @mask(%s: tensor<2x?xf32, #trt.dims<["2", "k"]>>, %m: tensor<1x?xf32, #trt.dims<["1", "l"]>>, %v: tensor<?x4xf32, #trt.dims<["k", "4"]>>) {
  %a = trt.elementwise sum %s, %m : (tensor<2x?xf32, #trt.dims<["2", "k"]>>, tensor<1x?xf32, #trt.dims<["1", "l"]>>) -> tensor<2x?xf32, #trt.dims<["2", "broadcast(k, l)"]>>
  %p = trt.softmax %a {axis = 1 : i64} : (tensor<2x?xf32, #trt.dims<["2", "broadcast(k, l)"]>>) -> tensor<2x?xf32, #trt.dims<["2", "broadcast(k, l)"]>>
  %y = trt.matrix_multiply %p, %v : (tensor<2x?xf32, #trt.dims<["2", "broadcast(k, l)"]>>, tensor<?x4xf32, #trt.dims<["k", "4"]>>) -> tensor<2x4xf32>
  func.return
}

// -----

// The joined axis may differ; the sum of its lengths follows what else becomes equal.
// CHECK-LABEL: @concatenation
// CHECK-SAME: %x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<?x?xf32, #trt.dims<["n", "b"]>>
// CHECK: -> tensor<?x?xf32, #trt.dims<["n", "a + b"]>>
func.func @concatenation(%x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<?x?xf32, #trt.dims<["m", "b"]>>) {
  %z = trt.concatenation %x, %y {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["n", "a"]>>, tensor<?x?xf32, #trt.dims<["m", "b"]>>) -> tensor<?x?xf32, #trt.dims<["n", "a + b"]>>
  func.return
}

// -----

// Columns meet rows; batches broadcast, and rows of lhs and columns of rhs are free.
// CHECK-LABEL: @product
// CHECK-SAME: %x: tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "c", "k"]>>
func.func @product(%x: tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "c", "l"]>>) {
  %z = trt.matrix_multiply %x, %y {lhs_op = #trt<matrix_operation transpose>, rhs_op = #trt<matrix_operation transpose>} : (tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, tensor<?x?x?xf32, #trt.dims<["m", "c", "l"]>>) -> tensor<?x?x?xf32, #trt.dims<["broadcast(m, n)", "r", "c"]>>
  func.return
}

// -----

// CHECK-LABEL: @vectors
// CHECK-SAME: %x: tensor<?x?xf32, #trt.dims<["n", "k"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "k", "c"]>>
func.func @vectors(%x: tensor<?x?xf32, #trt.dims<["n", "k"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) {
  %z = trt.matrix_multiply %x, %y {lhs_op = #trt<matrix_operation vector>} : (tensor<?x?xf32, #trt.dims<["n", "k"]>>, tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) -> tensor<?x?xf32, #trt.dims<["broadcast(m, n)", "c"]>>
  func.return
}

// -----

// `?` says nothing, and an expression of what no run binds stays: nothing changes.
// CHECK-LABEL: @apart
// CHECK-SAME: %x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<?x?xf32, #trt.dims<["2", "2*b"]>>, %z: tensor<?x1xf32>
func.func @apart(%x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<?x?xf32, #trt.dims<["2", "2*b"]>>, %z: tensor<?x1xf32>) {
  %s = trt.concatenation %x, %y {axis = 0 : i64} : (tensor<?x?xf32, #trt.dims<["n", "a"]>>, tensor<?x?xf32, #trt.dims<["2", "2*b"]>>) -> tensor<?x?xf32, #trt.dims<["n + 2", "a"]>>
  %t = trt.concatenation %x, %z {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["n", "a"]>>, tensor<?x1xf32>) -> tensor<?x?xf32, #trt.dims<["n", "a + 1"]>>
  func.return
}

// -----

// A length beside a number is that number, also where only an expression of it is.
// CHECK-LABEL: @numbers
// CHECK-SAME: %x: tensor<5x7xf32>, %w: tensor<5x4xf32>
// CHECK-SAME: -> tensor<4xf32>
func.func @numbers(%x: tensor<?x?xf32, #trt.dims<["n", "2*m + 1"]>>, %w: tensor<5x?xf32, #trt.dims<["5", "m + 1"]>>) -> tensor<?xf32, #trt.dims<["m + 1"]>> {
  %a = trt.constant {value = dense<1.0> : tensor<5x7xf32>} : tensor<5x7xf32>
  %b = trt.concatenation %x, %a {axis = 0 : i64} : (tensor<?x?xf32, #trt.dims<["n", "2*m + 1"]>>, tensor<5x7xf32>) -> tensor<?x7xf32, #trt.dims<["n + 5", "7"]>>
  %e = trt.concatenation %x, %a {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["n", "2*m + 1"]>>, tensor<5x7xf32>) -> tensor<5x?xf32, #trt.dims<["5", "2*m + 8"]>>
  %c = trt.reduce sum %w {axes = array<i64: 0>, keep_dims = false} : (tensor<5x?xf32, #trt.dims<["5", "m + 1"]>>) -> tensor<?xf32, #trt.dims<["m + 1"]>>
  func.return %c : tensor<?xf32, #trt.dims<["m + 1"]>>
}

// -----

// A symbol beside an expression of symbols that a run binds is that expression.
// CHECK-LABEL: @expression
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?x4xf32, #trt.dims<["2*n", "4"]>>
func.func @expression(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?x4xf32, #trt.dims<["m", "4"]>>) -> tensor<4xf32> {
  %d = trt.concatenation %x, %x {axis = 0 : i64} : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["2*n"]>>
  %s = trt.matrix_multiply %d, %y {lhs_op = #trt<matrix_operation vector>} : (tensor<?xf32, #trt.dims<["2*n"]>>, tensor<?x4xf32, #trt.dims<["m", "4"]>>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// Weights know the channels; the function keeps which layer has asked.
// CHECK-LABEL: @channels
// CHECK-SAME: %x: tensor<1x6x?xf32, #trt.dims<["1", "6", "w"]>>
// CHECK-SAME: trt.lengths_by_layer = {{\[\[}}"trt.convolution", array<i64: 0, 1>{{\]\]}}
func.func @channels(%x: tensor<1x?x?xf32, #trt.dims<["1", "c", "w"]>>, %k: tensor<4x3x1xf32>) {
  %y = trt.convolution %x, %k {num_groups = 2 : i64} : (tensor<1x?x?xf32, #trt.dims<["1", "c", "w"]>>, tensor<4x3x1xf32>) -> tensor<1x4x?xf32, #trt.dims<["1", "4", "w"]>>
  func.return
}

// -----

// A branch need not run, so that its lengths bind no others.
// CHECK-LABEL: @branch
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>
func.func @branch(%x: tensor<?xf32, #trt.dims<["n"]>>, %k: tensor<4xf32>, %c: tensor<i1>) {
  %h = tensor.extract %c[] : tensor<i1>
  scf.if %h {
    %y = trt.elementwise sum %x, %k : (tensor<?xf32, #trt.dims<["n"]>>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield
  }
  func.return
}

// -----

// Two lengths of which each is at least the other are one; the words of the layer stay for callers of other inputs.
// CHECK-LABEL: @asserted
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["n"]>>
// CHECK-SAME: trt.lengths_by_layer = {{\[\[}}"{right} is not {left}", array<i64: 1, 0>]]
// CHECK: trt.elementwise sum {{.*}} -> tensor<?xf32, #trt.dims<["n"]>>
func.func @asserted(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>) {
  trt.require_lengths {layer = "same", relation = "at_least", lengths = #trt.dims<["n", "m", "1"]>, fault = "{right} is not {left}"}
  trt.require_lengths {layer = "same", relation = "at_least", lengths = #trt.dims<["m", "n", "1"]>, fault = "{left} is not {right}"}
  %a = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  func.return
}

// -----

// One bound alone says nothing of equality.
// CHECK-LABEL: @ordered
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>
func.func @ordered(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>) {
  trt.require_lengths {layer = "more", relation = "at_least", lengths = #trt.dims<["n", "m", "1"]>, fault = "{left} is below {right}"}
  trt.require_lengths {layer = "again", relation = "at_least", lengths = #trt.dims<["n", "m", "1"]>, fault = "{left} is below {right}"}
  func.return
}
