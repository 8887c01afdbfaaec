// RUN: rt-opt %s --split-input-file -p run-loops-in-one-block | filecheck %s

// A loop of small launches is one launch; kernels that only it has launched are erased.
// CHECK-LABEL: @small
// CHECK-NOT: plan.while
// CHECK: plan.launch %more, %x {kernel = @loop_{{[0-9a-f]+}}, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"n">], grid = [#plan.expression<"1">, #plan.expression<"1">, #plan.expression<"1">]}
// CHECK-NOT: @double
// CHECK: kernel.func @loop_{{[0-9a-f]+}}([[MORE:%.*]]: memref<?xi1>, [[X:%.*]]: memref<?xf32>, [[N:%.*]]: index)
// CHECK: %thread = kernel.thread_id
// CHECK: scf.while
// CHECK-NEXT: [[HOLDS:%.*]] = kernel.load [[MORE]][] strides []
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: scf.condition([[HOLDS]])
// CHECK: arith.mulf
// CHECK: kernel.barrier
// CHECK: kernel.store {{.*}}, [[MORE]][]
// CHECK: kernel.barrier
// CHECK-NEXT: scf.yield
func.func @small(%more: !plan.memory, %x: !plan.memory) {
  plan.while %more : !plan.memory {
  } do {
    plan.launch %x {kernel = @double, args = [#plan.pointer<0, "0">, #plan.expression<"n">], grid = [#plan.expression<"4">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory
    plan.launch %x, %more {kernel = @is_small, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">], grid = [#plan.expression<"1">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory, !plan.memory
  }
  func.return
}
kernel.func @double(%x: memref<?xf32>, %n: index) attributes {target = "cuda", block_size = 64 : i64} {
  %c64 = arith.constant 64 : index
  %thread = kernel.thread_id : index
  %block = kernel.block_id {axis = 0 : i64} : index
  %first = arith.muli %block, %c64 : index
  %i = arith.addi %first, %thread : index
  %inside = arith.cmpi slt, %i, %n : index
  scf.if %inside {
    %v = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
    %two = arith.constant 2.0 : f32
    %w = arith.mulf %v, %two : f32
    kernel.store %w, %x[%i] strides [1] : f32, memref<?xf32>
  }
  kernel.return
}
kernel.func @is_small(%x: memref<?xf32>, %more: memref<?xi1>) attributes {target = "cuda", block_size = 32 : i64} {
  %v = kernel.load %x[] strides [] : memref<?xf32> -> f32
  %limit = arith.constant 9.0 : f32
  %holds = arith.cmpf olt, %v, %limit : f32
  %thread = kernel.thread_id : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %thread, %zero : index
  scf.if %first {
    kernel.store %holds, %more[] strides [] : i1, memref<?xi1>
  }
  kernel.return
}

// -----

// A kernel of many blocks is faster on many processors, and a check is the host's.
// CHECK-LABEL: @large
// CHECK: plan.while
// CHECK: plan.launch %x {kernel = @fill
// CHECK: plan.while
// CHECK: plan.require
// CHECK: kernel.func @fill
func.func @large(%more: !plan.memory, %x: !plan.memory) {
  plan.while %more : !plan.memory {
  } do {
    plan.launch %x {kernel = @fill, args = [#plan.pointer<0, "0">], grid = [#plan.expression<"9">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory
  }
  plan.while %more : !plan.memory {
  } do {
    plan.launch %x {kernel = @fill, args = [#plan.pointer<0, "0">], grid = [#plan.expression<"1">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory
    plan.require %more {message = "there is no more"} : !plan.memory
  }
  func.return
}
kernel.func @fill(%x: memref<?xf32>) attributes {target = "cuda", block_size = 64 : i64} {
  %thread = kernel.thread_id : index
  %one = arith.constant 1.0 : f32
  kernel.store %one, %x[%thread] strides [1] : f32, memref<?xf32>
  kernel.return
}

// -----

// A branch in a loop is one in the kernel; the loop inside of one that stays is still merged.
// CHECK-LABEL: @nested
// CHECK: plan.while
// CHECK-NEXT: } do {
// CHECK-NEXT: plan.launch %x {kernel = @fill
// CHECK-NEXT: plan.launch %more, %side, %x {kernel = @loop_
// CHECK: kernel.func @loop_
// CHECK: scf.condition
// CHECK: [[SIDE:%.*]] = kernel.load %{{.*}}[] strides []
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: scf.if [[SIDE]] {
func.func @nested(%more: !plan.memory, %side: !plan.memory, %x: !plan.memory) {
  plan.while %more : !plan.memory {
  } do {
    plan.launch %x {kernel = @fill, args = [#plan.pointer<0, "0">], grid = [#plan.expression<"n">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory
    plan.while %more : !plan.memory {
    } do {
      plan.if %side : !plan.memory {
        plan.launch %x {kernel = @fill, args = [#plan.pointer<0, "0">], grid = [#plan.expression<"1">, #plan.expression<"1">, #plan.expression<"1">]} : !plan.memory
      } else {
      }
    }
  }
  func.return
}
kernel.func @fill(%x: memref<?xf32>) attributes {target = "cuda", block_size = 64 : i64} {
  %thread = kernel.thread_id : index
  %one = arith.constant 1.0 : f32
  kernel.store %one, %x[%thread] strides [1] : f32, memref<?xf32>
  kernel.return
}
