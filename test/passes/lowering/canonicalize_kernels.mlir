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
    kernel.return
  }
}

// -----

// A loop of one iteration is its body, which the number of the iteration decides; its results are what it yields.
// CHECK-LABEL: kernel.func @once
// CHECK-NOT: scf.for
// CHECK-NOT: scf.if
// CHECK: [[MORE:%.*]] = arith.addi %thread, %three
// CHECK-NEXT: kernel.store %three, %out{{.}}[[MORE]]{{.}}
// CHECK-NEXT: kernel.store [[MORE]], %out{{.}}%thread{{.}}
// CHECK-NEXT: kernel.return
builtin.module {
  kernel.func @once(%out: memref<?xindex>) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %three = arith.constant 3 : index
    %five = arith.constant 5 : index
    %many = arith.constant 64 : index
    %last, %first = scf.for %i = %three to %five step %many iter_args(%a = %thread, %b = %many) -> (index, index) {
      %more = arith.addi %a, %i : index
      kernel.store %i, %out[%more] strides [1] : index, memref<?xindex>
      %later = arith.cmpi sgt, %i, %three : index
      %leads = arith.cmpi eq, %a, %three : index
      %both = arith.andi %leads, %later : i1
      scf.if %both {
        kernel.barrier
      }
      scf.yield %more, %a : index, index
    }
    kernel.store %last, %out[%first] strides [1] : index, memref<?xindex>
    kernel.return
  }
}

// -----

// A loop that is known to run once by its bounds alone, within one whose bounds are known in a run.
// CHECK-LABEL: kernel.func @within
// CHECK: scf.for %k = %zero to %size
// CHECK-NOT: scf.for
// CHECK: kernel.store %zero, %out{{.}}%k{{.}}
// CHECK: kernel.return
builtin.module {
  kernel.func @within(%out: memref<?xindex>, %size: index) attributes {target = "cuda", block_size = 64 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %k = %zero to %size step %one {
      scf.for %i = %zero to %one step %size {
        kernel.store %i, %out[%k] strides [1] : index, memref<?xindex>
      }
    }
    kernel.return
  }
}

// -----

// Two iterations stay a loop, as do numbers of iterations that only a run knows.
// CHECK-LABEL: kernel.func @several
// CHECK: scf.for %k = %zero to %two step %one
// CHECK: scf.for %k_1 = %zero to %two step %size
// CHECK: scf.for %k_2 = %size to %two step %two
// CHECK: kernel.return
builtin.module {
  kernel.func @several(%out: memref<?xindex>, %size: index) attributes {target = "cuda", block_size = 64 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    scf.for %k = %zero to %two step %one {
      kernel.store %k, %out[%k] strides [1] : index, memref<?xindex>
    }
    scf.for %k_1 = %zero to %two step %size {
      kernel.store %k_1, %out[%k_1] strides [1] : index, memref<?xindex>
    }
    scf.for %k_2 = %size to %two step %two {
      kernel.store %k_2, %out[%k_2] strides [1] : index, memref<?xindex>
    }
    kernel.return
  }
}

// -----

// A condition that is known decides a conjunction or a disjunction, or leaves the other one.
// CHECK-LABEL: kernel.func @conditions
// CHECK: kernel.store %any, %out[%zero]
// CHECK: kernel.store %leads, %out[%one]
// CHECK: kernel.return
builtin.module {
  kernel.func @conditions(%out: memref<?xi1>) attributes {target = "cuda", block_size = 64 : i64} {
    %thread = kernel.thread_id : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %true = arith.constant true
    %leads = arith.cmpi eq, %thread, %zero : index
    %any = arith.ori %leads, %true : i1
    kernel.store %any, %out[%zero] strides [1] : i1, memref<?xi1>
    %same = arith.andi %true, %leads : i1
    kernel.store %same, %out[%one] strides [1] : i1, memref<?xi1>
    kernel.return
  }
}
