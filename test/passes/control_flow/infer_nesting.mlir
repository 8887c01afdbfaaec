// RUN: rt-opt %s --split-input-file -p infer-nesting | filecheck %s
// tensorrt-features.md#7.13 and 7.14 of A7, tensorrt-features.md#8.4 and 8.8 of A8.
// What depends on the inside of a loop or branch is inside; what does not is outside.

// CHECK-LABEL: func.func @loop_in_loop
// CHECK: %r = trt.recurrence %x {trt.nesting = ["outer"], loop = @outer}
// CHECK: %free = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: %q = trt.recurrence %r {trt.nesting = ["outer", "inner"], loop = @inner}
// CHECK: %s = trt.elementwise sum %q, %free {trt.nesting = ["outer", "inner"]}
// CHECK: %p = trt.loop_output last_value %q {trt.nesting = ["outer"], loop = @inner}
// CHECK: %y = trt.loop_output last_value %r {loop = @outer}
func.func @loop_in_loop(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @outer} : tensor<i32>
  %r = trt.recurrence %x {loop = @outer} : (tensor<4xf32>) -> tensor<4xf32>
  trt.trip_limit count %n {loop = @inner} : tensor<i32>
  %free = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %q = trt.recurrence %r {loop = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %q, %free : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %q, %s : tensor<4xf32>, tensor<4xf32>
  %p = trt.loop_output last_value %q {loop = @inner} : (tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %p : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @outer} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Without an input of the conditional a branch is computed in any case.
// CHECK-LABEL: func.func @lazy_and_eager
// CHECK: %t = trt.unary neg %a {trt.nesting = ["choice.then"]}
// CHECK: %u = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
func.func @lazy_and_eager(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %u = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %t, %u {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The borders of a conditional are where the conditional is, also a condition that nothing inside changes.
// CHECK-LABEL: func.func @if_in_loop
// CHECK: trt.condition %c {trt.nesting = ["steps"], conditional = @choice}
// CHECK: %t = trt.unary neg %a {trt.nesting = ["steps", "choice.else"]}
// CHECK: %s = trt.if_output %r, %t {trt.nesting = ["steps"], conditional = @choice}
func.func @if_in_loop(%x: tensor<4xf32>, %c: tensor<i1>, %n: tensor<i32>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %x {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %r {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.if_output %r, %t {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
