// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK:      kernel.func @threads(%x: memref<?xf32>) attributes {block_size = 64 : i64} {
// CHECK-NEXT:   %tile = kernel.shared : memref<128xf16, "shared">
// CHECK-NEXT:   %accumulators = kernel.reuse_shared %tile : memref<128xf16, "shared"> -> memref<64xf32, "shared">
// CHECK-NEXT:   %t = kernel.thread_id : index
// CHECK-NEXT:   %b = kernel.block_id {axis = 1 : i64} : index
// CHECK-NEXT:   %g = kernel.grid_size {axis = 2 : i64} : index
// CHECK-NEXT:   kernel.barrier
// CHECK-NEXT:   kernel.warp_barrier
// CHECK-NEXT:   %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %other = kernel.shuffle %zero {mask = 16 : i64} : f32 -> f32
kernel.func @threads(%x: memref<?xf32>) attributes {block_size = 64 : i64} {
  %tile = kernel.shared : memref<128xf16, "shared">
  %accumulators = kernel.reuse_shared %tile : memref<128xf16, "shared"> -> memref<64xf32, "shared">
  %t = kernel.thread_id : index
  %b = kernel.block_id {axis = 1 : i64} : index
  %g = kernel.grid_size {axis = 2 : i64} : index
  kernel.barrier
  kernel.warp_barrier
  %zero = arith.constant 0.0 : f32
  %other = kernel.shuffle %zero {mask = 16 : i64} : f32 -> f32
  kernel.return
}

// CHECK:      kernel.func @fragments
// CHECK:        %a = kernel.fill_fragment %v : f32 -> vector<4xf32>
// CHECK-NEXT:   %b = kernel.fragment %v, %v : f32, f32 -> vector<2xf32>
// CHECK-NEXT:   %e = kernel.fragment_element %b {position = 1 : i64} : vector<2xf32> -> f32
// CHECK-NEXT:   %c = kernel.load_fragment %x[%i] {offsets = array<i64: 0, 1, 2, 3>, wide = true} : memref<?xf32> -> vector<4xf32>
// CHECK-NEXT:   %d = kernel.load_fragment %x[%i] stride %n valid %n {offsets = array<i64: 0, 8>} : memref<?xf32> -> vector<2xf32>
// CHECK-NEXT:   kernel.store_fragment %c, %x[%i] valid %n {offsets = array<i64: 0, 1, 2, 3>} : vector<4xf32>, memref<?xf32>
// CHECK-NEXT:   %f = kernel.outer_product %a, %b, %d : vector<4xf32>, vector<2xf32>, vector<2xf32> -> vector<4xf32>
// CHECK-NEXT:   %g = kernel.outer_product %a, %c, %d {line = 1 : i64, left_lines = 2 : i64} : vector<4xf32>, vector<4xf32>, vector<2xf32> -> vector<4xf32>
// CHECK-NEXT:   kernel.store_fragment %c, %x[%i] {offsets = array<i64: 0, 1, 2, 3>, wide = true, together = 2 : i64} : vector<4xf32>, memref<?xf32>
kernel.func @fragments(%x: memref<?xf32>, %i: index, %n: index, %v: f32) {
  %a = kernel.fill_fragment %v : f32 -> vector<4xf32>
  %b = kernel.fragment %v, %v : f32, f32 -> vector<2xf32>
  %e = kernel.fragment_element %b {position = 1 : i64} : vector<2xf32> -> f32
  %c = kernel.load_fragment %x[%i] {offsets = array<i64: 0, 1, 2, 3>, wide = true} : memref<?xf32> -> vector<4xf32>
  %d = kernel.load_fragment %x[%i] stride %n valid %n {offsets = array<i64: 0, 8>} : memref<?xf32> -> vector<2xf32>
  kernel.store_fragment %c, %x[%i] valid %n {offsets = array<i64: 0, 1, 2, 3>} : vector<4xf32>, memref<?xf32>
  %f = kernel.outer_product %a, %b, %d : vector<4xf32>, vector<2xf32>, vector<2xf32> -> vector<4xf32>
  %g = kernel.outer_product %a, %c, %d {line = 1 : i64, left_lines = 2 : i64} : vector<4xf32>, vector<4xf32>, vector<2xf32> -> vector<4xf32>
  kernel.store_fragment %c, %x[%i] {offsets = array<i64: 0, 1, 2, 3>, wide = true, together = 2 : i64} : vector<4xf32>, memref<?xf32>
  kernel.return
}

// CHECK:      kernel.func @matrices
// CHECK:        kernel.copy_async %x[%i], %tile[%i] {count = 8 : i64} : memref<?xf16>, memref<512xf16, "shared">
// CHECK-NEXT:   kernel.copy_async %x[%i], %tile[%i] valid %i {count = 4 : i64} : memref<?xf16>, memref<512xf16, "shared">
// CHECK-NEXT:   kernel.copy_async %x[%i], %tile[%i] {count = 8 : i64, offsets = array<i64: 16, 8>} : memref<?xf16>, memref<512xf16, "shared">
// CHECK-NEXT:   kernel.commit_async
// CHECK-NEXT:   kernel.wait_async {pending = 1 : i64}
// CHECK-NEXT:   %a = kernel.load_matrix %tile[%i] {count = 1 : i64, step = 0 : i64} : memref<512xf16, "shared"> -> vector<4xi32>
// CHECK-NEXT:   %b = kernel.load_matrix %tile[%i] {count = 1 : i64, step = 0 : i64, transpose = true} : memref<512xf16, "shared"> -> vector<4xi32>
// CHECK:        %d = kernel.mma bf16 %c, %a, %b {rows = 1 : i64, columns = 2 : i64} : vector<8xf32>, vector<4xi32>, vector<4xi32> -> vector<8xf32>
kernel.func @matrices(%x: memref<?xf16>, %i: index, %v: f32) {
  %tile = kernel.shared : memref<512xf16, "shared">
  kernel.copy_async %x[%i], %tile[%i] {count = 8 : i64} : memref<?xf16>, memref<512xf16, "shared">
  kernel.copy_async %x[%i], %tile[%i] valid %i {count = 4 : i64} : memref<?xf16>, memref<512xf16, "shared">
  kernel.copy_async %x[%i], %tile[%i] {count = 8 : i64, offsets = array<i64: 16, 8>} : memref<?xf16>, memref<512xf16, "shared">
  kernel.commit_async
  kernel.wait_async {pending = 1 : i64}
  %a = kernel.load_matrix %tile[%i] {count = 1 : i64, step = 0 : i64} : memref<512xf16, "shared"> -> vector<4xi32>
  %b = kernel.load_matrix %tile[%i] {count = 1 : i64, step = 0 : i64, transpose = true} : memref<512xf16, "shared"> -> vector<4xi32>
  %c = kernel.fill_fragment %v : f32 -> vector<8xf32>
  %d = kernel.mma bf16 %c, %a, %b {rows = 1 : i64, columns = 2 : i64} : vector<8xf32>, vector<4xi32>, vector<4xi32> -> vector<8xf32>
  kernel.return
}
