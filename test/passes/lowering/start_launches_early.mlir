// RUN: rt-opt %s -p start-launches-early | filecheck %s

// CHECK:      kernel.func @plain(%x: memref<?xf32>) attributes {block_size = 256 : i64, dependent_launch} {
// CHECK-NEXT:   kernel.launch_dependents
// CHECK-NEXT:   kernel.wait_dependency
// CHECK-NEXT:   kernel.return
kernel.func @plain(%x: memref<?xf32>) attributes {block_size = 256 : i64} {
  kernel.return
}

// A kernel that says by itself what may come early.
// CHECK:      kernel.func @early
// CHECK-NEXT:   kernel.launch_dependents
// CHECK-NEXT:   %t = kernel.thread_id : index
// CHECK-NEXT:   kernel.wait_dependency
// CHECK-NEXT:   kernel.return
kernel.func @early(%x: memref<?xf32>) attributes {block_size = 256 : i64, dependent_launch} {
  kernel.launch_dependents
  %t = kernel.thread_id : index
  kernel.wait_dependency
  kernel.return
}

// Blocks that all run at the same time.
// CHECK:      kernel.func @together
// CHECK-NEXT:   kernel.return
kernel.func @together(%x: memref<?xf32>) attributes {block_size = 256 : i64, cooperative} {
  kernel.return
}
