// RUN: rt-opt %s --split-input-file -p name-dimensions,propagate-shapes | filecheck %s

// CHECK-LABEL: @unnamed
// CHECK-SAME: %x: tensor<?x3x?xf32, #trt.dims<["x_0", "3", "x_2"]>>
// CHECK-NEXT: trt.unary exp %x : {{.*}} -> tensor<?x3x?xf32, #trt.dims<["x_0", "3", "x_2"]>>
func.func @unnamed(%x: tensor<?x3x?xf32>) -> tensor<?x3x?xf32> {
  %y = trt.unary exp %x : (tensor<?x3x?xf32>) -> tensor<?x3x?xf32>
  func.return %y : tensor<?x3x?xf32>
}

// -----

// Names that are there stay.
// CHECK-LABEL: @named
// CHECK-SAME: %x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<4xf32>
func.func @named(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<4xf32>) {
  func.return
}
