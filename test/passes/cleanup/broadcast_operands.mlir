// RUN: rt-opt %s --split-input-file -p broadcast-operands | filecheck %s
// RUN: rt-opt %s --split-input-file -p broadcast-operands,broadcast-operands | filecheck %s

// A run may make either length 1; the last axis has one name, and a constant 1 is repeated as it is.
// CHECK-LABEL: @sum
// CHECK: [[A:%.*]] = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "3"]>}
// CHECK-NEXT: [[B:%.*]] = trt.broadcast %y {size = #trt.dims<["broadcast(m, n)", "3"]>}
// CHECK-NEXT: trt.elementwise sum [[A]], [[B]] : (tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>, tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>)
// CHECK-NEXT: trt.elementwise prod %x, %w
func.func @sum(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["m", "3"]>>, %w: tensor<1x3xf32>) {
  %a = trt.elementwise sum %x, %y : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<?x3xf32, #trt.dims<["m", "3"]>>) -> tensor<?x3xf32, #trt.dims<["broadcast(m, n)", "3"]>>
  %b = trt.elementwise prod %x, %w : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<1x3xf32>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  func.return
}

// -----

// Only what differs: lengths of one name, and the one that the result has.
// CHECK-LABEL: @some
// CHECK-NEXT: [[C:%.*]] = trt.broadcast %c {size = #trt.dims<["5"]>} : (tensor<?xi1, #trt.dims<["k"]>>) -> tensor<5xi1>
// CHECK-NEXT: trt.select [[C]], %x, %w
// CHECK-NEXT: [[D:%.*]] = trt.broadcast %d {size = #trt.dims<["k"]>}
// CHECK-NEXT: trt.elementwise or %c, [[D]]
// CHECK-NEXT: trt.elementwise and %c, %c
func.func @some(%c: tensor<?xi1, #trt.dims<["k"]>>, %d: tensor<?xi1, #trt.dims<["l"]>>, %x: tensor<5xf32>, %w: tensor<1xf32>) {
  %y = trt.select %c, %x, %w : (tensor<?xi1, #trt.dims<["k"]>>, tensor<5xf32>, tensor<1xf32>) -> tensor<5xf32>
  %e = trt.elementwise or %c, %d : (tensor<?xi1, #trt.dims<["k"]>>, tensor<?xi1, #trt.dims<["l"]>>) -> tensor<?xi1, #trt.dims<["k"]>>
  %f = trt.elementwise and %c, %c : (tensor<?xi1, #trt.dims<["k"]>>, tensor<?xi1, #trt.dims<["k"]>>) -> tensor<?xi1, #trt.dims<["k"]>>
  func.return
}

// -----

// Batches of products, but not their rows, columns and sums; also the axes under an ellipsis.
// CHECK-LABEL: @products
// CHECK-NEXT: trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "r", "k"]>}
// CHECK-NEXT: trt.broadcast %y {size = #trt.dims<["broadcast(m, n)", "l", "c"]>}
// CHECK-NEXT: trt.matrix_multiply
// CHECK-NEXT: trt.broadcast %x {size = #trt.dims<["broadcast(m, n)", "r", "k"]>}
// CHECK-NEXT: trt.broadcast %y {size = #trt.dims<["broadcast(m, n)", "l", "c"]>}
// CHECK-NEXT: trt.einsum
func.func @products(%x: tensor<?x?x?xf32, #trt.dims<["n", "r", "k"]>>, %y: tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) {
  %a = trt.matrix_multiply %x, %y : (tensor<?x?x?xf32, #trt.dims<["n", "r", "k"]>>, tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) -> tensor<?x?x?xf32, #trt.dims<["broadcast(m, n)", "r", "c"]>>
  %b = trt.einsum %x, %y {equation = "...ij,...jk->...ik"} : (tensor<?x?x?xf32, #trt.dims<["n", "r", "k"]>>, tensor<?x?x?xf32, #trt.dims<["m", "l", "c"]>>) -> tensor<?x?x?xf32, #trt.dims<["broadcast(m, n)", "r", "c"]>>
  func.return
}

// -----

// A length that is 1 or 0 by its formula is read where it is, unless a product reads it; what nobody knows stays.
// CHECK-LABEL: @short
// CHECK-NEXT: trt.elementwise
// CHECK-NEXT: trt.elementwise
// CHECK-NEXT: trt.broadcast %x {size = #trt.dims<["m", "2", "2"]>}
// CHECK-NEXT: trt.matrix_multiply
func.func @short(%x: tensor<?x2x2xf32, #trt.dims<["min(n, 1)", "2", "2"]>>, %y: tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>, %z: tensor<?x2x2xf32>) {
  %a = trt.elementwise sum %x, %y : (tensor<?x2x2xf32, #trt.dims<["min(n, 1)", "2", "2"]>>, tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>) -> tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>
  %b = trt.elementwise sum %z, %y : (tensor<?x2x2xf32>, tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>) -> tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>
  %c = trt.matrix_multiply %x, %y : (tensor<?x2x2xf32, #trt.dims<["min(n, 1)", "2", "2"]>>, tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>) -> tensor<?x2x2xf32, #trt.dims<["m", "2", "2"]>>
  func.return
}
