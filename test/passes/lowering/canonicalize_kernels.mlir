// RUN: rt-opt %s --split-input-file -p canonicalize-kernels | filecheck %s

// A comparison of numbers decides a branch, whose ops take its place.
// CHECK-LABEL: kernel.func @decided
// CHECK-NOT: scf.if
// CHECK-NOT: arith.cmpi
// CHECK: kernel.barrier
// CHECK-NOT: kernel.barrier
// CHECK: kernel.return
builtin.module {
  kernel.func @decided() attributes {target = "cuda", block_size = 64 : i64} {
    %five = arith.constant 5 : index
    %other = arith.constant 5 : index
    %equal = arith.cmpi eq, %five, %other : index
    %less = arith.cmpi slt, %five, %other : index
    scf.if %equal {
      kernel.barrier
    }
    scf.if %less {
      kernel.barrier
    }
    kernel.return
  }
}

// -----

// Additions of zero, products with one and casts that do nothing are their operands.
// CHECK-LABEL: kernel.func @nothing
// CHECK: %thread = kernel.thread_id
// CHECK-NOT: arith.addi
// CHECK-NOT: arith.muli
// CHECK-NOT: arith.index_cast
// CHECK: kernel.store {{.*}}, %out[%thread]
builtin.module {
  kernel.func @nothing(%out: memref<?xf32>) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = arith.addi %thread, %zero : index
    %product = arith.muli %one, %sum : index
    %wide = arith.index_cast %product : index to i64
    %back = arith.index_cast %wide : i64 to index
    %nothing = arith.muli %thread, %zero : index
    %at = arith.addi %back, %nothing : index
    %value = arith.constant 1.0 : f32
    kernel.store %value, %out[%at] strides [1] : f32, memref<?xf32>
    kernel.return
  }
}

// -----

// Equal numbers of a block are computed once, those of a block inside of it for themselves.
// CHECK-LABEL: kernel.func @twice
// CHECK: [[Q:%.*]] = arith.divui %thread
// CHECK-NOT: arith.divui
// CHECK: [[S:%.*]] = arith.addi [[Q]], [[Q]]
// CHECK: kernel.store {{.*}}, %out{{.}}[[S]]{{.}}
builtin.module {
  kernel.func @twice(%out: memref<?xf32>) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %eight = arith.constant 8 : index
    %a = arith.divui %thread, %eight : index
    %again = arith.constant 8 : index
    %b = arith.divui %thread, %again : index
    %unread = arith.remui %thread, %eight : index
    %at = arith.addi %a, %b : index
    %value = arith.constant 1.0 : f32
    kernel.store %value, %out[%at] strides [1] : f32, memref<?xf32>
    kernel.return
  }
}

// -----

// Floats stay: -0.0 + 0.0 is 0.0. An index that passed through 32 bits may have lost some.
// CHECK-LABEL: kernel.func @stays
// CHECK: arith.index_cast
// CHECK: arith.index_cast
// CHECK: arith.addf
builtin.module {
  kernel.func @stays(%in: memref<?xf32>, %out: memref<?xf32>, %size: index) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %narrow = arith.index_cast %size : index to i32
    %at = arith.index_cast %narrow : i32 to index
    %x = kernel.load %in[%thread] strides [1] : memref<?xf32> -> f32
    %zero = arith.constant 0.0 : f32
    %y = arith.addf %x, %zero : f32
    kernel.store %y, %out[%at] strides [1] : f32, memref<?xf32>
    kernel.return
  }
}

// -----

// A loop without iterations is what it starts with.
// CHECK-LABEL: kernel.func @iterations
// CHECK-NOT: scf.for
// CHECK: kernel.store %thread, %out[%thread]
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: kernel.return
builtin.module {
  kernel.func @iterations(%out: memref<?xindex>) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %seven = arith.constant 7 : index
    %none = scf.for %i = %seven to %zero step %two iter_args(%carried = %thread) -> (index) {
      %more = arith.addi %carried, %i : index
      scf.yield %more : index
    }
    kernel.store %none, %out[%thread] strides [1] : index, memref<?xindex>
    scf.for %k = %zero to %two step %seven {
      kernel.store %k, %out[%thread] strides [1] : index, memref<?xindex>
    }
    kernel.return
  }
}
