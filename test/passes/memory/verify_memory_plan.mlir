// RUN: rt-opt %s -p verify-memory-plan | filecheck %s
// Memory that is shared only by buffers that are never alive together, or by one halo class, is fine.

kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  kernel.return
}

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  // CHECK: %a = plan.buffer
  %a = plan.buffer {bytes = #plan.expression<"64">, halo = "16 halo 1", first = 0 : i64, last = 1 : i64, offset = #plan.expression<"0">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">, first = 1 : i64, last = 2 : i64, offset = #plan.expression<"256">} : !plan.memory
  %c = plan.buffer {bytes = #plan.expression<"64">, halo = "16 halo 1", first = 2 : i64, last = 3 : i64, offset = #plan.expression<"0">} : !plan.memory
  %d = plan.buffer {bytes = #plan.expression<"64">, kind = #plan<buffer_kind output>, first = 3 : i64, last = 3 : i64} : !plan.memory
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %a, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %b, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %c, %d {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "64">]} : !plan.memory, !plan.memory
  %y = plan.output %d : !plan.memory -> tensor<16xf32>
  func.return %y : tensor<16xf32>
}
