// RUN: rt-opt %s --split-input-file --verify-diagnostics

kernel.func @axis() {
  // expected-error@+1 {{a grid has the axes 0, 1 and 2, not 3}}
  %b = kernel.block_id {axis = 3 : i64} : index
  kernel.return
}

// -----

kernel.func @shared_space() {
  // expected-error@+1 {{the memory space is "shared"}}
  %tile = kernel.shared : memref<128xf16>
  kernel.return
}

// -----

kernel.func @reuse_too_much() {
  %tile = kernel.shared : memref<128xf16, "shared">
  // expected-error@+1 {{512 bytes do not fit into 256}}
  %accumulators = kernel.reuse_shared %tile : memref<128xf16, "shared"> -> memref<128xf32, "shared">
  kernel.return
}

// -----

kernel.func @shuffle_mask(%v: f32) {
  // expected-error@+1 {{the mask is between 1 and 31}}
  %w = kernel.shuffle %v {mask = 32 : i64} : f32 -> f32
  kernel.return
}

// -----

kernel.func @shuffle_type(%v: f16) {
  // expected-error@+1 {{moves numbers of 32 or 64 bits, not f16}}
  %w = kernel.shuffle %v {mask = 1 : i64} : f16 -> f16
  kernel.return
}

// -----

kernel.func @fragment_size(%v: f32) {
  // expected-error@+1 {{2 elements for vector<3xf32>}}
  %w = kernel.fragment %v, %v : f32, f32 -> vector<3xf32>
  kernel.return
}

// -----

kernel.func @fragment_position(%v: vector<2xf32>) {
  // expected-error@+1 {{no position 2}}
  %w = kernel.fragment_element %v {position = 2 : i64} : vector<2xf32> -> f32
  kernel.return
}

// -----

kernel.func @offsets(%x: memref<?xf32>, %i: index) {
  // expected-error@+1 {{3 offsets for vector<2xf32>}}
  %v = kernel.load_fragment %x[%i] {offsets = array<i64: 0, 1, 2>} : memref<?xf32> -> vector<2xf32>
  kernel.return
}

// -----

kernel.func @guarded_shared(%i: index, %n: index) {
  %tile = kernel.shared : memref<128xf32, "shared">
  // expected-error@+1 {{only device memory is read as far as `valid`}}
  %v = kernel.load_fragment %tile[%i] valid %n {offsets = array<i64: 0, 1>} : memref<128xf32, "shared"> -> vector<2xf32>
  kernel.return
}

// -----

kernel.func @products(%a: vector<4xf32>, %b: vector<2xf32>, %c: vector<3xf32>) {
  // expected-error@+1 {{2 x 3 products for vector<4xf32>}}
  %d = kernel.outer_product %a, %b, %c : vector<4xf32>, vector<2xf32>, vector<3xf32> -> vector<4xf32>
  kernel.return
}

// -----

kernel.func @products_of_lines(%a: vector<4xf32>, %b: vector<4xf32>, %c: vector<2xf32>) {
  // expected-error@+1 {{no line 2}}
  %d = kernel.outer_product %a, %b, %c {line = 2 : i64, left_lines = 2 : i64} : vector<4xf32>, vector<4xf32>, vector<2xf32> -> vector<4xf32>
  kernel.return
}

// -----

kernel.func @moved_copies(%x: memref<?xf32>, %tile: memref<64xf32, "shared">, %i: index) {
  // expected-error@+1 {{there is an offset of the source and one of the target}}
  kernel.copy_async %x[%i], %tile[%i] {count = 4 : i64, offsets = array<i64: 4>} : memref<?xf32>, memref<64xf32, "shared">
  kernel.return
}

// -----

kernel.func @matrices_in_global_memory(%x: memref<?xf16>, %i: index) {
  // expected-error@+1 {{the matrices lie in shared memory}}
  %a = kernel.load_matrix %x[%i] {count = 1 : i64, step = 0 : i64} : memref<?xf16> -> vector<4xi32>
  kernel.return
}

// -----

kernel.func @transposed_bytes(%i: index) {
  %tile = kernel.shared : memref<512xi8, "shared">
  // expected-error@+1 {{only 16-bit elements can be transposed}}
  %a = kernel.load_matrix %tile[%i] {count = 1 : i64, step = 0 : i64, transpose = true} : memref<512xi8, "shared"> -> vector<4xi32>
  kernel.return
}

// -----

kernel.func @mma_fragments(%a: vector<8xf32>, %b: vector<4xi32>) {
  // expected-error@+1 {{takes (vector<4xf32>, vector<4xi32>, vector<2xi32>), not (vector<8xf32>, vector<4xi32>, vector<4xi32>)}}
  %d = kernel.mma f16 %a, %b, %b {rows = 1 : i64, columns = 1 : i64} : vector<8xf32>, vector<4xi32>, vector<4xi32> -> vector<8xf32>
  kernel.return
}

// -----

kernel.func @copy_size(%x: memref<?xf16>, %i: index) {
  %tile = kernel.shared : memref<512xf16, "shared">
  // expected-error@+1 {{copies 4, 8 or 16 bytes, not 2}}
  kernel.copy_async %x[%i], %tile[%i] {count = 1 : i64} : memref<?xf16>, memref<512xf16, "shared">
  kernel.return
}
