// RUN: rt-opt %s --split-input-file -p convert-if-to-select | filecheck %s

// CHECK-LABEL: func.func @cheap
// CHECK-NOT: scf.if
// CHECK: [[T:%.*]] = trt.unary neg %x
// CHECK: [[C:%.*]] = trt.shuffle %c {reshape_dims = #trt.dims<["1"]>} : (tensor<i1>) -> tensor<1xi1>
// CHECK: %y = trt.select [[C]], [[T]], %x
func.func @cheap(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.if %h -> (tensor<4xf32>) {
    %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

// A division may stop the machine, a large tensor costs time: these stay lazy.
// CHECK-LABEL: func.func @lazy
// CHECK: scf.if
// CHECK: scf.if
func.func @lazy(%x: tensor<4xi32>, %big: tensor<100000xf32>, %c: tensor<i1>) -> (tensor<4xi32>, tensor<100000xf32>) {
  %h = tensor.extract %c[] : tensor<i1>
  %y = scf.if %h -> (tensor<4xi32>) {
    %t = trt.elementwise div %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    scf.yield %t : tensor<4xi32>
  } else {
    scf.yield %x : tensor<4xi32>
  }
  %z = scf.if %h -> (tensor<100000xf32>) {
    %t = trt.unary exp %big : (tensor<100000xf32>) -> tensor<100000xf32>
    scf.yield %t : tensor<100000xf32>
  } else {
    scf.yield %big : tensor<100000xf32>
  }
  func.return %y, %z : tensor<4xi32>, tensor<100000xf32>
}
