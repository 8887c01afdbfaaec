// RUN: rt-opt %s --split-input-file -p require-equal-lengths | filecheck %s

// Sizes that are halved and doubled are the same again only where they are even.
// CHECK-LABEL: @halved
// CHECK-SAME: attributes {trt.equal_lengths = {{\[\[}}"trt.elementwise", #trt.dims<["h", "2*(h // 2)"]>]]}
func.func @halved(%x: tensor<?xf32, #trt.dims<["h"]>>, %y: tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) {
  %z = trt.elementwise sum %x, %y : (tensor<?xf32, #trt.dims<["h"]>>, tensor<?xf32, #trt.dims<["2*(h // 2)"]>>) -> tensor<?xf32, #trt.dims<["h"]>>
  func.return
}

// -----

// One equation is checked once; the joined axis is free.
// CHECK-LABEL: @joined
// CHECK-SAME: attributes {trt.equal_lengths = {{\[\[}}"trt.concatenation", #trt.dims<["h", "3*(w // 3)"]>]]}
func.func @joined(%x: tensor<?x?xf32, #trt.dims<["h", "w"]>>, %y: tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) {
  %z = trt.concatenation %x, %y {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["h", "w"]>>, tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) -> tensor<?x?xf32, #trt.dims<["h", "w + 4"]>>
  %a = trt.concatenation %x, %y {axis = 1 : i64} : (tensor<?x?xf32, #trt.dims<["h", "w"]>>, tensor<?x4xf32, #trt.dims<["3*(w // 3)", "4"]>>) -> tensor<?x?xf32, #trt.dims<["h", "w + 4"]>>
  func.return
}

// -----

// What is equal or repeated needs no check, nor does what only the data of a run tells get one.
// CHECK-LABEL: @decided
// CHECK-NOT: trt.equal_lengths
// CHECK: trt.elementwise
func.func @decided(%x: tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>, %y: tensor<1x?x?xf32, #trt.dims<["1", "k", "r // 3"]>>) {
  %z = trt.elementwise sum %x, %y : (tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>, tensor<1x?x?xf32, #trt.dims<["1", "k", "r // 3"]>>) -> tensor<?x?x?xf32, #trt.dims<["n", "k", "2*n"]>>
  func.return
}
