// RUN: rt-opt %s --split-input-file -p cse --print-debuginfo | filecheck %s

// CHECK-LABEL: @equal_layers
// CHECK-NEXT: [[A:%.*]] = trt.unary exp %x {{.*}} loc(fused["first", "second"])
// CHECK-NEXT: trt.elementwise sum [[A]], [[A]]
func.func @equal_layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %b = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %y = trt.elementwise sum %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: @different_properties
// CHECK: trt.activation relu
// CHECK: trt.activation tanh
func.func @different_properties(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.elementwise sum %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Equal bodies make equal launches, bodies that read their arguments in another order do not.
// CHECK-LABEL: @bodies
// CHECK: [[A:%.*]] = fused.pointwise %x, %y
// CHECK: [[C:%.*]] = fused.pointwise %x, %y
// CHECK-NOT: fused.pointwise
// CHECK: func.return [[A]], [[A]], [[C]]
func.func @bodies(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = fused.pointwise %x, %y {access = [#fused.access<["d0"]>, #fused.access<["d0"]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.subf %p, %q : f32
    fused.yield %s : f32
  }
  %b = fused.pointwise %x, %y {access = [#fused.access<["d0"]>, #fused.access<["d0"]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.subf %p, %q : f32
    fused.yield %s : f32
  }
  %c = fused.pointwise %x, %y {access = [#fused.access<["d0"]>, #fused.access<["d0"]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.subf %q, %p : f32
    fused.yield %s : f32
  }
  func.return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
