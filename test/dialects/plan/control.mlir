// RUN: rt-opt %s | rt-opt | filecheck %s
// Branches, loops and checks of the host program.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<i1>) {
  %c = plan.input %x : tensor<i1> -> !plan.memory
  // CHECK: plan.if %c : !plan.memory {
  // CHECK-NEXT: plan.launch %c {kernel = @k, args = []} : !plan.memory
  // CHECK-NEXT: } else {
  // CHECK-NEXT: }
  plan.if %c : !plan.memory {
    plan.launch %c {kernel = @k, args = []} : !plan.memory
  } else {
  }
  // CHECK: plan.while %c {offset = #plan.expression<"n">} : !plan.memory {
  // CHECK-NEXT: } do {
  // CHECK-NEXT: plan.launch
  plan.while %c {offset = #plan.expression<"n">} : !plan.memory {
  } do {
    plan.launch %c {kernel = @k, args = []} : !plan.memory
  }
  // CHECK: plan.size %c {symbol = "n1"} : !plan.memory
  plan.size %c {symbol = "n1"} : !plan.memory
  // CHECK: plan.size {symbol = "n2", value = #plan.expression<"2*n">}
  plan.size {symbol = "n2", value = #plan.expression<"2*n">}
  // CHECK: plan.require %c {message = "too long"} : !plan.memory
  plan.require %c {message = "too long"} : !plan.memory
  // CHECK: plan.require_lengths {layer = "join", relation = "equal", left = #plan.expression<"n1">, right = #plan.expression<"n">, where = #plan.expression<"1">, fault = "{left} is not {right}"}
  plan.require_lengths {layer = "join", relation = "equal", left = #plan.expression<"n1">, right = #plan.expression<"n">, where = #plan.expression<"1">, fault = "{left} is not {right}"}
  func.return
}
