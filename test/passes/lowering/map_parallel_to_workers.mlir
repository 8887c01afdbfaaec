// RUN: rt-opt %s -p map-parallel-to-workers | filecheck %s
// RUN: rt-opt %s -p 'map-parallel-to-workers{vector_bits=128}' | filecheck %s --check-prefix=NARROW

// Rows lie side by side: the last dimension becomes lanes, in chunks that workers share.
// CHECK-LABEL: kernel.func @rows
// CHECK:         [[SIZE:%.*]] = arith.constant 512 : index
// CHECK-NEXT:    %chunks = arith.ceildivsi %m, [[SIZE]] : index
// CHECK-NEXT:    kernel.parallel(%n, %chunks) attributes {workers} {
// CHECK-NEXT:    ^bb0(%i: index, [[C:%.*]]: index):
// CHECK-NEXT:      %start = arith.muli [[C]], [[SIZE]] : index
// CHECK-NEXT:      [[LEFT:%.*]] = arith.subi %m, %start : index
// CHECK-NEXT:      %length = arith.minsi [[LEFT]], [[SIZE]] : index
// CHECK-NEXT:      kernel.parallel(%length) attributes {lanes = 16 : i64} {
// CHECK-NEXT:      ^bb0(%j: index):
// CHECK-NEXT:        %v = kernel.load %x[%i, %start, %j] strides [%m, 1, 1]
// CHECK-NEXT:        kernel.store %v, %y[%i, %start, %j] strides [%m, 1, 1]
// NARROW-LABEL: kernel.func @rows
// NARROW:         attributes {lanes = 4 : i64}
kernel.func @rows(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  kernel.parallel (%n, %m) {
  ^bb0(%i: index, %j: index):
    %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
    kernel.store %v, %y [%i, %j] strides [%m, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// A result that is transposed: the dimension along which stores are neighbours becomes lanes, wherever it stands.
// CHECK-LABEL: kernel.func @transposed
// CHECK:         kernel.parallel(%m, %chunks) attributes {workers} {
// CHECK-NEXT:    ^bb0(%j: index, {{.*}}
// CHECK:           kernel.parallel(%length) attributes {lanes = 16 : i64} {
// CHECK-NEXT:      ^bb0(%i: index):
// CHECK-NEXT:        %v = kernel.load %x[%start, %i, %j] strides [%m, %m, 1]
kernel.func @transposed(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  kernel.parallel (%n, %m) {
  ^bb0(%i: index, %j: index):
    %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
    kernel.store %v, %y [%i, %j] strides [1, %n] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// The sum of a row runs over lanes, and workers share the rows.
// CHECK-LABEL: kernel.func @sums
// CHECK:         kernel.parallel(%n) attributes {workers} {
// CHECK:           kernel.reduce add(%m) init %zero attributes {lanes = 16 : i64}
kernel.func @sums(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %s = kernel.reduce add (%m) init %zero : f32 -> f32 {
    ^bb0(%j: index):
      %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
      kernel.yield %v : f32
    }
    kernel.store %s, %y [%i] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// The sum of a column does not: the columns do.
// CHECK-LABEL: kernel.func @column_sums
// CHECK:         kernel.parallel(%length) attributes {lanes = 16 : i64} {
// CHECK:           kernel.reduce add(%n) init %zero : f32
kernel.func @column_sums(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%m) {
  ^bb0(%j: index):
    %s = kernel.reduce add (%n) init %zero : f32 -> f32 {
    ^bb0(%i: index):
      %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
      kernel.yield %v : f32
    }
    kernel.store %s, %y [%j] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// What one lane does must not depend on a condition of its own: such a loop stays scalar, its index whole elsewhere.
// CHECK-LABEL: kernel.func @guarded
// CHECK-NOT:     lanes
// CHECK:         kernel.parallel(%length) {
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      [[AT:%.*]] = arith.addi %start, %i : index
// CHECK-NEXT:      %some = arith.cmpi slt, [[AT]], %m : index
// CHECK:           kernel.store %zero, %y[%start, %i]
kernel.func @guarded(%y: memref<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %some = arith.cmpi slt, %i, %m : index
    scf.if %some {
      kernel.store %zero, %y [%i] strides [1] : f32, memref<?xf32>
    }
    kernel.yield
  }
  kernel.return
}

// A kernel that says what each worker does is left as it is.
// CHECK-LABEL: kernel.func @shared
// CHECK:         kernel.parallel(%n) attributes {workers} {
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      kernel.store %zero, %y[%i]
kernel.func @shared(%y: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%n) attributes {workers} {
  ^bb0(%i: index):
    kernel.store %zero, %y [%i] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}
