// RUN: rt-opt %s -p gather-sequential-launches | filecheck %s
// Launches that keep one worker busy come side by side, behind all that the later one needs.

kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %v = kernel.load %x[%zero] strides [1] : memref<?xf32> -> f32
  kernel.store %v, %y[%zero] strides [1] : f32, memref<?xf32>
  kernel.return
}

// Memory that is declared between launches is declared in front of them.
// CHECK-LABEL: func.func @directions
func.func @directions(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %p = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: %q = plan.buffer
  // CHECK-NEXT: %b = plan.buffer
  // CHECK-NEXT: %y = plan.buffer
  // CHECK-NEXT: plan.launch %in, %p
  // CHECK-NEXT: plan.launch %in, %q
  // CHECK-NEXT: plan.launch %p, %a {{.*}}sequential
  // CHECK-NEXT: plan.launch %q, %b {{.*}}sequential
  // CHECK-NEXT: plan.launch %a, %y
  // CHECK-NEXT: plan.launch %b, %y
  plan.launch %in, %p {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %p, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  %q = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %y = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  plan.launch %a, %y {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %in, %q {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %q, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  plan.launch %b, %y {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  func.return
}

// A layer that reads the layer below stays behind it.
// CHECK-LABEL: func.func @layers
func.func @layers(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %p = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: plan.launch %in, %a
  // CHECK-NEXT: plan.launch %a, %p
  // CHECK-NEXT: plan.launch %p, %b
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  plan.launch %a, %p {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.launch %p, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  func.return
}
