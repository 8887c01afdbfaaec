// RUN: rt-opt %s -p join-independent-launches | filecheck %s
// RUN: rt-opt %s -p join-independent-launches{most=2} | filecheck %s --check-prefix=PAIRS
// A launch is joined with the next one where neither reads nor writes what the other one writes.

kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %v = kernel.load %x[%zero] strides [1] : memref<?xf32> -> f32
  kernel.store %v, %y[%zero] strides [1] : f32, memref<?xf32>
  kernel.return
}

// CHECK-LABEL: func.func @branches
// PAIRS-LABEL: func.func @branches
func.func @branches(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %c = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %d = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // Three readers of the input.
  // CHECK: plan.launch %in, %a {{.*}}no_barrier
  // PAIRS: plan.launch %in, %a {{.*}}no_barrier
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %b {{.*}}no_barrier
  // PAIRS-NEXT: plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // The next one overwrites what this one reads.
  // CHECK-NEXT: plan.launch %b, %d {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %b, %d {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  func.return
}

// Large launches are done one by one: what they use would be alive for longer.
// CHECK-LABEL: func.func @large
func.func @large(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"2097153">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %c = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %d = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %c {{.*}}no_barrier
  plan.launch %in, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %d {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %d {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  func.return
}

// Parts of one tensor have no byte in common; a part and the whole do.
// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"128">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"128">} : !plan.memory
  // CHECK: part = [0]>], no_barrier}
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0", part = [0]>]} : !plan.memory, !plan.memory
  // CHECK-NEXT: part = [1]>]} :
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "64", part = [1]>]} : !plan.memory, !plan.memory
  plan.launch %a, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  func.return
}

// What decides about a branch is done before it, and no launch is joined with one of a branch.
// CHECK-LABEL: func.func @conditions
func.func @conditions(%x: tensor<16xf32>, %more: tensor<i1>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %c = plan.input %more : tensor<i1> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  plan.if %c : !plan.memory {
    // CHECK: plan.launch %in, %a {{.*}}no_barrier
    plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
    plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  } else {
  }
  func.return
}

// Sequential launches are for each other: who joins them must not be what another one of them waits for.
// CHECK-LABEL: func.func @sequential
func.func @sequential(%x: tensor<16xf32>) {
  %in = plan.input %x : tensor<16xf32> -> !plan.memory
  %a = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  %c = plan.buffer {bytes = #plan.expression<"64">} : !plan.memory
  // CHECK: plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} :
  plan.launch %in, %a {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  // CHECK-NEXT: plan.launch %in, %b {{.*}}no_barrier
  plan.launch %in, %b {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  plan.launch %a, %c {kernel = @copy, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], sequential} : !plan.memory, !plan.memory
  func.return
}
