// RUN: rt-opt %s | rt-opt | filecheck %s
// Reductions.

// CHECK-LABEL: func.func @keeps_axes
func.func @keeps_axes(%x: tensor<1x8x7x7xf32>) {
  // CHECK: %y = trt.reduce avg %x {axes = array<i64: 2, 3>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x1x1xf32>
  %y = trt.reduce avg %x {axes = array<i64: 2, 3>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x1x1xf32>
  func.return
}

// CHECK-LABEL: func.func @drops_axes
func.func @drops_axes(%x: tensor<?x8xi64, #trt.dims<["n", "8"]>>) {
  // CHECK: %y = trt.reduce sum %x {axes = array<i64: 1>, keep_dims = false} : (tensor<?x8xi64, #trt.dims<["n", "8"]>>) -> tensor<?xi64, #trt.dims<["n"]>>
  %y = trt.reduce sum %x {axes = array<i64: 1>, keep_dims = false} : (tensor<?x8xi64, #trt.dims<["n", "8"]>>) -> tensor<?xi64, #trt.dims<["n"]>>
  func.return
}

// CHECK-LABEL: func.func @any
func.func @any(%x: tensor<4xi1>) {
  // CHECK: %y = trt.reduce max %x {axes = array<i64: 0>, keep_dims = false} : (tensor<4xi1>) -> tensor<i1>
  %y = trt.reduce max %x {axes = array<i64: 0>, keep_dims = false} : (tensor<4xi1>) -> tensor<i1>
  func.return
}
