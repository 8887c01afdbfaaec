// RUN: rt-opt %s --split-input-file -p hoist-broadcasts | filecheck %s

// Through layers of one element, to the input of the network.
// CHECK-LABEL: @elements
// CHECK-NEXT: [[X:%.*]] = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "3"]>}
// CHECK-NEXT: [[A:%.*]] = trt.activation relu [[X]] : {{.*}} -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
// CHECK-NEXT: trt.elementwise sum [[A]], %w : {{.*}} -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
// CHECK-NEXT: return
func.func @elements(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %w: tensor<1x3xf32>) -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>> {
  %a = trt.activation relu %x : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  %b = trt.elementwise sum %a, %w : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<1x3xf32>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  %c = trt.broadcast %b {size = #trt.dims<["broadcast(m, n)", "3"]>} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
  func.return %c : tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
}

// -----

// A reshape with a permutation keeps the axis behind equally many elements; indices are repeated in the place of what they find.
// CHECK-LABEL: @moves
// CHECK-NEXT: [[I:%.*]] = trt.broadcast %i {size = #trt.dims<["broadcast(m, n)", "s"]>}
// CHECK-NEXT: [[G:%.*]] = trt.gather %w, [[I]] {{.*}} -> tensor<?x?x8xf32, #trt.dims<["broadcast(m, n)", "s", "8"]>>
// CHECK-NEXT: trt.shuffle [[G]] {reshape_dims = #trt.dims<["broadcast(m, n)", "s", "2", "4"]>, second_transpose = array<i64: 2, 0, 1, 3>} : {{.*}} -> tensor<2x?x?x4xf32, #trt.dims<["2", "broadcast(m, n)", "s", "4"]>>
// CHECK-NEXT: return
func.func @moves(%i: tensor<?x?xi64, #trt.dims<["n", "s"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %w: tensor<9x8xf32>) -> tensor<2x?x?x4xf32, #trt.dims<["2", "broadcast(m, n)", "s", "4"]>> {
  %g = trt.gather %w, %i : (tensor<9x8xf32>, tensor<?x?xi64, #trt.dims<["n", "s"]>>) -> tensor<?x?x8xf32, #trt.dims<["n", "s", "8"]>>
  %h = trt.shuffle %g {reshape_dims = #trt.dims<["0", "0", "2", "4"]>, second_transpose = array<i64: 2, 0, 1, 3>} : (tensor<?x?x8xf32, #trt.dims<["n", "s", "8"]>>) -> tensor<2x?x?x4xf32, #trt.dims<["2", "n", "s", "4"]>>
  %c = trt.broadcast %h {size = #trt.dims<["2", "broadcast(m, n)", "s", "4"]>} : (tensor<2x?x?x4xf32, #trt.dims<["2", "n", "s", "4"]>>) -> tensor<2x?x?x4xf32, #trt.dims<["2", "broadcast(m, n)", "s", "4"]>>
  func.return %c : tensor<2x?x?x4xf32, #trt.dims<["2", "broadcast(m, n)", "s", "4"]>>
}

// -----

// Rows of a product that another one follows: rows of its left side. Reductions and softmax of another axis.
// CHECK-LABEL: @sums
// CHECK-NEXT: [[X:%.*]] = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "4"]>}
// CHECK-NEXT: [[P:%.*]] = trt.matrix_multiply [[X]], %w
// CHECK-NEXT: [[S:%.*]] = trt.softmax [[P]]
// CHECK-NEXT: [[R:%.*]] = trt.reduce max [[S]] {axes = array<i64: 1>, keep_dims = false} : {{.*}} -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
// CHECK-NEXT: trt.matrix_multiply [[R]], %v
func.func @sums(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %w: tensor<4x4xf32>, %v: tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>) {
  %p = trt.matrix_multiply %x, %w : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x4xf32>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %s = trt.softmax %p {axis = 1 : i64} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %r = trt.reduce max %s {axes = array<i64: 1>, keep_dims = false} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
  %c = trt.broadcast %r {size = #trt.dims<["broadcast(m, n)"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  %d = trt.matrix_multiply %c, %v {lhs_op = #trt<matrix_operation vector>, rhs_op = #trt<matrix_operation vector>} : (tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>, tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>) -> tensor<f32>
  func.return
}

// -----

// Not past a product that no other follows, nor where another layer reads the short tensor, nor along the axis of a softmax.
// CHECK-LABEL: @stays
// CHECK-NEXT: [[P:%.*]] = trt.matrix_multiply %x, %w
// CHECK-NEXT: trt.broadcast [[P]]
// CHECK-NEXT: [[A:%.*]] = trt.activation relu %x
// CHECK-NEXT: trt.broadcast [[A]]
// CHECK-NEXT: trt.unary exp [[A]]
// CHECK-NEXT: [[S:%.*]] = trt.softmax %x
// CHECK-NEXT: trt.broadcast [[S]]
func.func @stays(%x: tensor<?x4xf32, #trt.dims<["n", "4"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %w: tensor<4x4xf32>) {
  %p = trt.matrix_multiply %x, %w : (tensor<?x4xf32, #trt.dims<["n", "4"]>>, tensor<4x4xf32>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %q = trt.broadcast %p {size = #trt.dims<["broadcast(m, n)", "4"]>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["broadcast(m, n)", "4"]>>
  %a = trt.activation relu %x : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %b = trt.broadcast %a {size = #trt.dims<["broadcast(m, n)", "4"]>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["broadcast(m, n)", "4"]>>
  %e = trt.unary exp %a : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %s = trt.softmax %x {axis = 0 : i64} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["n", "4"]>>
  %t = trt.broadcast %s {size = #trt.dims<["broadcast(m, n)", "4"]>} : (tensor<?x4xf32, #trt.dims<["n", "4"]>>) -> tensor<?x4xf32, #trt.dims<["broadcast(m, n)", "4"]>>
  func.return
}

// -----

// Nor to where a size of the run is not known yet. One broadcast of another is one.
// CHECK-LABEL: @late
// CHECK-NEXT: [[A:%.*]] = trt.activation relu %x
// CHECK-NEXT: trt.define_size
// CHECK-NEXT: trt.broadcast [[A]]
// CHECK-NEXT: trt.broadcast %x {size = #trt.dims<["broadcast(broadcast(k, m), n)"]>}
// CHECK-NEXT: return
func.func @late(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>, %z: tensor<?xf32, #trt.dims<["k"]>>, %i: tensor<i64>) {
  %a = trt.activation relu %x : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["n"]>>
  trt.define_size %i {symbol = "r"} : tensor<i64>
  %b = trt.broadcast %a {size = #trt.dims<["broadcast(n, r)"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["broadcast(n, r)"]>>
  %c = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)"]>} : (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>
  %d = trt.broadcast %c {size = #trt.dims<["broadcast(broadcast(k, m), n)"]>} : (tensor<?xf32, #trt.dims<["broadcast(m, n)"]>>) -> tensor<?xf32, #trt.dims<["broadcast(broadcast(k, m), n)"]>>
  func.return
}
