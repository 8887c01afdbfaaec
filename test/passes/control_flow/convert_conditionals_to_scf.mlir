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

// Row 8.3 of A8, relaxed: branches may have different lengths, and the one that is taken says which.
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
