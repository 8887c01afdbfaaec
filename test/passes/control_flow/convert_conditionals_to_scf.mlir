// RUN: rt-opt %s --split-input-file -p infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf | filecheck %s

// CHECK-LABEL: func.func @lazy
// CHECK: %u = trt.unary exp %x
// CHECK: [[C:%.*]] = tensor.extract %c[] : tensor<i1>
// CHECK: %y = scf.if [[C]] -> (tensor<4xf32>) {
// CHECK-NEXT: %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: scf.yield %t : tensor<4xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %u : tensor<4xf32>
// CHECK-NEXT: }
func.func @lazy(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %u = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %t, %u {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// tensorrt-features.md#8.3 of A8, relaxed: branches may have different lengths, and the one that is taken says which.
// CHECK-LABEL: func.func @unequal
// CHECK: %y = scf.if
// CHECK: trt.define_size {symbol = "choice_0_d0", value = "8"}
// CHECK: } else {
// CHECK: trt.define_size {symbol = "choice_0_d0", value = "4"}
// CHECK: func.return %y : tensor<?xf32, #trt.dims<["choice_0_d0"]>>
func.func @unequal(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<?xf32> {
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.concatenation %a, %a {axis = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %y = trt.if_output %t, %a {conditional = @choice} : (tensor<8xf32>, tensor<4xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// A condition that nothing inside of the loop changes.
// CHECK-LABEL: func.func @condition_from_outside
// CHECK: scf.for
// CHECK: [[C:%.*]] = tensor.extract %c[] : tensor<i1>
// CHECK: scf.if [[C]]
func.func @condition_from_outside(%x: tensor<4xf32>, %c: tensor<i1>, %n: tensor<i32>) -> tensor<4xf32> {
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %x {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %r {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.elementwise sum %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = trt.if_output %t, %r {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A conditional without anything in it, on the second side of another one.
// CHECK-LABEL: func.func @nothing_in_it
// CHECK: scf.if
// CHECK: } else {
// CHECK: scf.if
// CHECK: scf.yield %x : tensor<4xf32>
// CHECK: scf.yield %z : tensor<4xf32>
func.func @nothing_in_it(%x: tensor<4xf32>, %z: tensor<4xf32>, %c: tensor<i1>, %d: tensor<i1>) -> tensor<4xf32> {
  trt.condition %c {conditional = @outer} : tensor<i1>
  %a = trt.if_input %x {conditional = @outer} : (tensor<4xf32>) -> tensor<4xf32>
  trt.condition %d {conditional = @inner} : tensor<i1>
  %s = trt.if_output %a, %z {conditional = @inner} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %z, %s {conditional = @outer} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
