// RUN: rt-opt %s -p map-parallel-to-threads --split-input-file | filecheck %s

// A flat loop: one thread per iteration, and as many blocks as that takes.
// CHECK:       func.func @main
// CHECK:         plan.launch
// CHECK-SAME:    grid = [#plan.expression<"((m*n + 63) // 64)">, #plan.expression<"1">, #plan.expression<"1">]
// CHECK:       kernel.func @fill(%y: memref<?xf32>, %n: index, %m: index) attributes {block_size = 64 : i64} {
// CHECK:         %thread = kernel.thread_id : index
// CHECK-NEXT:    %block = kernel.block_id {axis = 0 : i64} : index
// CHECK:         [[TOTAL:%.*]] = arith.muli %n, %m : index
// CHECK:         %number = arith.addi
// CHECK-NEXT:    [[INSIDE:%.*]] = arith.cmpi slt, %number, [[TOTAL]] : index
// CHECK-NEXT:    scf.if [[INSIDE]] {
// CHECK-NEXT:      %j = arith.remui %number, %m : index
// CHECK-NEXT:      %i = arith.divui %number, %m : index
// CHECK-NEXT:      kernel.store
// CHECK-NEXT:    }
// CHECK-NEXT:    kernel.return
func.func @main(%x: tensor<?x?xf32, #trt.dims<["n", "m"]>>) -> tensor<?x?xf32, #trt.dims<["n", "m"]>> {
  %b = plan.buffer {bytes = #plan.expression<"4*m*n">} : !plan.memory
  plan.launch %b {kernel = @fill, args = [#plan.pointer<0, "0">, #plan.expression<"n">, #plan.expression<"m">]} : !plan.memory
  %y = plan.output %b : !plan.memory -> tensor<?x?xf32, #trt.dims<["n", "m"]>>
  func.return %y : tensor<?x?xf32, #trt.dims<["n", "m"]>>
}
kernel.func @fill(%y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n, %m) {
  ^bb0(%i: index, %j: index):
    kernel.store %zero, %y [%i, %j] strides [%m, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// -----

// An inner loop: a block takes an iteration of the outer one, its threads those of the inner one; a barrier orders what
// they write and read. Indices are narrow, as everything is small.
// CHECK:       plan.launch
// CHECK-SAME:    grid = [#plan.expression<"3">, #plan.expression<"1">, #plan.expression<"1">]
// CHECK:       kernel.func @rows(%x: memref<?xf32>, %y: memref<?xf32>) attributes {
// CHECK-SAME:    block_size = 64 : i64, index_bits = 32 : i64
// CHECK:         scf.for %j = %thread to {{.*}} step
// CHECK:           kernel.store
// CHECK:         kernel.barrier
// CHECK:         scf.for %j_1 = %thread to {{.*}} step
// CHECK:           kernel.store
// CHECK:         kernel.barrier
func.func @main(%x: tensor<3x100xf32>) -> tensor<3x100xf32> {
  %a = plan.input %x : tensor<3x100xf32> -> !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"1200">} : !plan.memory
  plan.launch %a, %b {kernel = @rows, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  %y = plan.output %b : !plan.memory -> tensor<3x100xf32>
  func.return %y : tensor<3x100xf32>
}
kernel.func @rows(%x: memref<?xf32>, %y: memref<?xf32>) {
  %three = arith.constant 3 : index
  %hundred = arith.constant 100 : index
  %last = arith.constant 99 : index
  kernel.parallel (%three) {
  ^bb0(%i: index):
    kernel.parallel (%hundred) {
    ^bb0(%j: index):
      %v = kernel.load %x [%i, %j] strides [100, 1] : memref<?xf32> -> f32
      kernel.store %v, %y [%i, %j] strides [100, 1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.parallel (%hundred) {
    ^bb0(%j: index):
      %k = arith.subi %last, %j : index
      %v = kernel.load %y [%i, %j] strides [100, 1] : memref<?xf32> -> f32
      kernel.store %v, %y [%i, %j] strides [100, 1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// -----

// Threads do four neighbours each. A load whose index has a stride of 0 is one for all of them, although the index differs
// from one to the next: any of its values will do.
// CHECK:       kernel.func @shared(
// CHECK:         [[J:%j.*]] = arith.addi
// CHECK:         %v = kernel.load %x{{\[}}[[J]]] strides [0]
// CHECK-NOT:     kernel.load %x
// CHECK:         %w = kernel.load_fragment %x
func.func @main(%x: tensor<65536xf32>) -> tensor<65536xf32> {
  %a = plan.input %x : tensor<65536xf32> -> !plan.memory
  %b = plan.buffer {bytes = #plan.expression<"262144">} : !plan.memory
  plan.launch %a, %b {kernel = @shared, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">]} : !plan.memory, !plan.memory
  %y = plan.output %b : !plan.memory -> tensor<65536xf32>
  func.return %y : tensor<65536xf32>
}
kernel.func @shared(%x: memref<?xf32>, %y: memref<?xf32>) {
  %n = arith.constant 65536 : index
  %three = arith.constant 3 : index
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %j = arith.addi %i, %three : index
    %v = kernel.load %x [%j] strides [0] : memref<?xf32> -> f32
    %w = kernel.load %x [%i, %j] strides [1, 0] : memref<?xf32> -> f32
    %s = arith.addf %v, %w : f32
    kernel.store %s, %y [%i] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}
