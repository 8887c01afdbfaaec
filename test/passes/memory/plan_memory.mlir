// RUN: rt-opt %s -p plan-memory | filecheck %s
// A buffer lives from the first launch that uses it, or a view of it, to the last; unused memory is erased.

kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  kernel.return
}

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<8xf32>, tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  // CHECK-NOT: plan.weight
  %unused = plan.weight {value = #trt.weights<"w", "0123456789abcdef">, bytes = 4 : i64} : !plan.memory
  // CHECK: %a = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 2 : i64} : !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK-NOT: plan.view
  %gone = plan.view %a {offset = #plan.expression<"0">, bytes = #plan.expression<"4">} : !plan.memory -> !plan.memory
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"16">]} : !plan.memory, !plan.memory
  // CHECK: %b = plan.buffer {bytes = #plan.expression<"64">, kind = #plan<buffer_kind output>, first = 1 : i64, last = 3 : i64} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"16">]} : !plan.memory, !plan.memory
  // CHECK: %part = plan.view %a
  %part = plan.view %a {offset = #plan.expression<"32">, bytes = #plan.expression<"32">} : !plan.memory -> !plan.memory
  // Returned in part, and returned twice: copied out at the end.
  // CHECK: %c = plan.buffer {bytes = #plan.expression<"64">, first = 2 : i64, last = 3 : i64} : !plan.memory
  %c = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  plan.launch %part, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"8">]} : !plan.memory, !plan.memory
  plan.launch %b, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "32">, #plan.expression<"8">]} : !plan.memory, !plan.memory
  %half = plan.view %c {offset = #plan.expression<"32">, bytes = #plan.expression<"32">} : !plan.memory -> !plan.memory
  %y = plan.output %b : !plan.memory -> tensor<16xf32>
  %z = plan.output %half : !plan.memory -> tensor<8xf32>
  %w = plan.output %c : !plan.memory -> tensor<16xf32>
  func.return %y, %z, %w : tensor<16xf32>, tensor<8xf32>, tensor<16xf32>
}

// What a loop writes piece by piece, and nobody but the caller reads, lives through all of its iterations.
// CHECK-LABEL: func.func @in_a_loop
func.func @in_a_loop(%x: tensor<16xf32>, %more: tensor<i1>) -> tensor<16xf32> {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %c = plan.input %more : tensor<i1> -> !plan.memory
  // CHECK: %y = plan.buffer {bytes = #plan.expression<"64">, kind = #plan<buffer_kind output>, first = 0 : i64, last = 1 : i64} : !plan.memory
  %y = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: %t = plan.buffer {bytes = #plan.expression<"64">, first = 0 : i64, last = 1 : i64} : !plan.memory
  %t = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  plan.while %c : !plan.memory {
  } do {
    plan.launch %in, %t {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"16">]} : !plan.memory, !plan.memory
    plan.launch %t, %y {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"16">]} : !plan.memory, !plan.memory
  }
  %z = plan.output %y : !plan.memory -> tensor<16xf32>
  func.return %z : tensor<16xf32>
}
