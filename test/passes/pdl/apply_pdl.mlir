// RUN: rt-opt %s --split-input-file -p 'apply-pdl{file=%S/two_relus.pdl}' --print-debuginfo | filecheck %s

// The new layer bears the names of both; its type is inferred.
// CHECK-LABEL: @two
// CHECK-NEXT: %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc(fused["first", "second"])
// CHECK-NEXT: func.return %y
func.func @two(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  func.return %y : tensor<4xf32>
}

// -----

// What a rewrite makes is looked at again.
// CHECK-LABEL: @three
// CHECK-COUNT-1: trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc(fused["first", "second", "third"])
// CHECK-NEXT: func.return
func.func @three(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %b = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %y = trt.activation relu %b : (tensor<4xf32>) -> tensor<4xf32> loc("third")
  func.return %y : tensor<4xf32>
}

// -----

// A layer that is read elsewhere stays, with its name.
// CHECK-LABEL: @read_twice
// CHECK-NEXT: %a = trt.activation relu %x {{.*}} loc("first")
// CHECK-NEXT: %y = trt.activation relu %x {{.*}} loc("second")
// CHECK-NEXT: func.return %a, %y
func.func @read_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  func.return %a, %y : tensor<4xf32>, tensor<4xf32>
}

// -----

// Another kind is another layer.
// CHECK-LABEL: @others
// CHECK-NEXT: trt.activation tanh
// CHECK-NEXT: trt.activation relu
func.func @others(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
