// RUN: rt-opt %s | rt-opt | filecheck %s
// Structured kernels: loops over boxes, reductions, strided memory.

// CHECK-LABEL: kernel.func @row_sums(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index, %s: index) attributes {target = "cpu", family = "reduction"} {
kernel.func @row_sums(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index, %s: index) attributes {target = "cpu", family = "reduction"} {
  %zero = arith.constant 0.0 : f32
  // CHECK: kernel.parallel(%n) {
  kernel.parallel(%n) {
  ^bb0(%i: index):
    // CHECK: %sum = kernel.reduce add(%m) init %zero : f32 -> f32 {
    %sum = kernel.reduce add(%m) init %zero : f32 -> f32 {
    ^bb1(%k: index):
      // CHECK: %v = kernel.load %x[%i, %k] strides [%s, 1] : memref<?xf32> -> f32
      %v = kernel.load %x[%i, %k] strides [%s, 1] : memref<?xf32> -> f32
      kernel.yield %v : f32
    }
    // CHECK: kernel.store %sum, %y[%i] strides [1] : f32, memref<?xf32>
    kernel.store %sum, %y[%i] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}
