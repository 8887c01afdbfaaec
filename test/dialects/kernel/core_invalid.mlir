// RUN: rt-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{buffers are rank-1 memrefs, not memref<2x2xf32>}}
kernel.func @rank(%x: memref<2x2xf32>) {
  kernel.return
}

// -----

kernel.func @indices(%n: index) {
  // expected-error@+1 {{the body takes one index per extent, 1; it takes 2}}
  kernel.parallel(%n) {
  ^bb0(%i: index, %j: index):
    kernel.yield
  }
  kernel.return
}

// -----

kernel.func @terminator(%n: index) {
  // expected-error@+1 {{the body does not end with kernel.yield}}
  kernel.parallel(%n) {
  ^bb0(%i: index):
    kernel.return
  }
  kernel.return
}

// -----

kernel.func @strides(%x: memref<?xf32>, %i: index) {
  // expected-error@+1 {{1 indices and 2 strides}}
  %v = kernel.load %x[%i] strides [1, 1] : memref<?xf32> -> f32
  kernel.return
}

// -----

kernel.func @dynamic_strides(%x: memref<?xf32>, %i: index) {
  // expected-error@+1 {{0 strides are dynamic, 1 are given}}
  %v = "kernel.load"(%x, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1>, static_strides = array<i64: 1>}> : (memref<?xf32>, index, index) -> f32
  kernel.return
}
