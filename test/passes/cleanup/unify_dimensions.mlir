// RUN: rt-opt %s --split-input-file -p unify-dimensions | filecheck %s

// The first name among the inputs stands for all of a chain, in every type and property.
// CHECK-LABEL: @chain
// CHECK-SAME: %x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %z: tensor<?x3xf32, #trt.dims<["n", "3"]>>
// CHECK-SAME: -> tensor<?xf32, #trt.dims<["3*n"]>>
// CHECK: trt.elementwise sum %y, %z : {{.*}} -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
// CHECK: trt.shuffle %b {{.*}}#trt.dims<["3*n"]>{{.*}} -> tensor<?xf32, #trt.dims<["3*n"]>>
func.func @chain(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["m", "3"]>>, %z: tensor<?x3xf32, #trt.dims<["k", "3"]>>) -> tensor<?xf32, #trt.dims<["3*m"]>> {
  %a = trt.elementwise sum %y, %z : (tensor<?x3xf32, #trt.dims<["m", "3"]>>, tensor<?x3xf32, #trt.dims<["k", "3"]>>) -> tensor<?x3xf32, #trt.dims<["m", "3"]>>
  %b = trt.elementwise sum %a, %x : (tensor<?x3xf32, #trt.dims<["m", "3"]>>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["m", "3"]>>
  %c = trt.shuffle %b {reshape_dims = #trt.dims<["3*m"]>} : (tensor<?x3xf32, #trt.dims<["m", "3"]>>) -> tensor<?xf32, #trt.dims<["3*m"]>>
  func.return %c : tensor<?xf32, #trt.dims<["3*m"]>>
}

// -----

// Three shapes of a choice.
// CHECK-LABEL: @select
// CHECK-SAME: %c: tensor<?xi1, #trt.dims<["a"]>>, %x: tensor<?xf32, #trt.dims<["a"]>>, %y: tensor<?xf32, #trt.dims<["a"]>>
func.func @select(%c: tensor<?xi1, #trt.dims<["a"]>>, %x: tensor<?xf32, #trt.dims<["b"]>>, %y: tensor<?xf32, #trt.dims<["c"]>>) {
  %z = trt.select %c, %x, %y : (tensor<?xi1, #trt.dims<["a"]>>, tensor<?xf32, #trt.dims<["b"]>>, tensor<?xf32, #trt.dims<["c"]>>) -> tensor<?xf32, #trt.dims<["a"]>>
  func.return
}

// -----

// CHECK-LABEL: @parametric_relu
// CHECK-SAME: %s: tensor<1x?xf32, #trt.dims<["1", "h"]>>
func.func @parametric_relu(%x: tensor<?x?xf32, #trt.dims<["n", "h"]>>, %s: tensor<1x?xf32, #trt.dims<["1", "g"]>>) {
  %y = trt.parametric_relu %x, %s : (tensor<?x?xf32, #trt.dims<["n", "h"]>>, tensor<1x?xf32, #trt.dims<["1", "g"]>>) -> tensor<?x?xf32, #trt.dims<["n", "h"]>>
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

// Columns meet rows, and batches meet batches; rows of lhs and columns of rhs are free.
// CHECK-LABEL: @product
// CHECK-SAME: %x: tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, %y: tensor<?x?x?xf32, #trt.dims<["n", "c", "k"]>>
func.func @product(%x: tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "c", "l"]>>) {
  %z = trt.matrix_multiply %x, %y {lhs_op = #trt<matrix_operation transpose>, rhs_op = #trt<matrix_operation transpose>} : (tensor<?x?x?xf32, #trt.dims<["n", "k", "r"]>>, tensor<?x?x?xf32, #trt.dims<["m", "c", "l"]>>) -> tensor<?x?x?xf32, #trt.dims<["n", "r", "c"]>>
  func.return
}

// -----

// CHECK-LABEL: @vectors
// CHECK-SAME: %x: tensor<?x?xf32, #trt.dims<["n", "k"]>>, %y: tensor<?x?x?xf32, #trt.dims<["n", "k", "c"]>>
func.func @vectors(%x: tensor<?x?xf32, #trt.dims<["n", "k"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) {
  %z = trt.matrix_multiply %x, %y {lhs_op = #trt<matrix_operation vector>} : (tensor<?x?xf32, #trt.dims<["n", "k"]>>, tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) -> tensor<?x?xf32, #trt.dims<["n", "c"]>>
  func.return
}

// -----

// A constant 1 is repeated, `?` says nothing, and an expression of what no run binds stays: nothing changes.
// CHECK-LABEL: @apart
// CHECK-SAME: %x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<1x?xf32, #trt.dims<["1", "2*b"]>>, %z: tensor<?x1xf32>
func.func @apart(%x: tensor<?x?xf32, #trt.dims<["n", "a"]>>, %y: tensor<1x?xf32, #trt.dims<["1", "2*b"]>>, %z: tensor<?x1xf32>) {
  %s = trt.elementwise sum %x, %y : (tensor<?x?xf32, #trt.dims<["n", "a"]>>, tensor<1x?xf32, #trt.dims<["1", "2*b"]>>) -> tensor<?x?xf32, #trt.dims<["n", "a"]>>
  %t = trt.elementwise sum %x, %z : (tensor<?x?xf32, #trt.dims<["n", "a"]>>, tensor<?x1xf32>) -> tensor<?x?xf32, #trt.dims<["n", "a"]>>
  func.return
}

// -----

// A length beside a number is that number, also where only an expression of it is.
// CHECK-LABEL: @numbers
// CHECK-SAME: %x: tensor<5x7xf32>, %w: tensor<5x4xf32>
// CHECK-SAME: -> tensor<4xf32>
func.func @numbers(%x: tensor<?x?xf32, #trt.dims<["n", "2*m + 1"]>>, %w: tensor<5x?xf32, #trt.dims<["5", "m + 1"]>>) -> tensor<?xf32, #trt.dims<["m + 1"]>> {
  %a = trt.constant {value = dense<1.0> : tensor<5x7xf32>} : tensor<5x7xf32>
  %b = trt.elementwise sum %x, %a : (tensor<?x?xf32, #trt.dims<["n", "2*m + 1"]>>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %c = trt.reduce sum %w {axes = array<i64: 0>, keep_dims = false} : (tensor<5x?xf32, #trt.dims<["5", "m + 1"]>>) -> tensor<?xf32, #trt.dims<["m + 1"]>>
  func.return %c : tensor<?xf32, #trt.dims<["m + 1"]>>
}

// -----

// A symbol beside an expression of symbols that a run binds is that expression.
// CHECK-LABEL: @expression
// CHECK-SAME: %x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["2*n"]>>
func.func @expression(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["2*n"]>> {
  %d = trt.concatenation %x, %x {axis = 0 : i64} : (tensor<?xf32, #trt.dims<["n"]>>, tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["2*n"]>>
  %s = trt.elementwise sum %d, %y : (tensor<?xf32, #trt.dims<["2*n"]>>, tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["2*n"]>>
  func.return %s : tensor<?xf32, #trt.dims<["2*n"]>>
}
