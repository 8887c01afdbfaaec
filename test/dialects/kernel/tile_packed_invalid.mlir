// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @codes_that_are_no_bytes(%w: memref<?xi32>, %s: memref<?xf32>, %i: index) {
  // expected-error@+1 {{C1: kernel.tile_load_packed: reads codes from bytes, not from i32}}
  %t = kernel.tile_load_packed codes %w[%i] scale %s[%i] zero %s[%i] {bits = 4 : i64, depth = 8 : i64} : memref<?xi32>, memref<?xf32>, memref<?xf32> -> vector<8x2x16xf32>
  func.return
}

// -----

func.func @three_bits(%w: memref<?xui8>, %s: memref<?xf32>, %i: index) {
  // expected-error@+1 {{C2: kernel.tile_load_packed: codes of 3 bits}}
  %t = kernel.tile_load_packed codes %w[%i] scale %s[%i] zero %s[%i] {bits = 3 : i64, depth = 8 : i64} : memref<?xui8>, memref<?xf32>, memref<?xf32> -> vector<8x2x16xf32>
  func.return
}

// -----

func.func @more_than_a_word(%t: vector<1x2x16xf32>, %x: memref<?xf32>, %w: memref<?xui8>, %i: index) {
  // expected-error@+1 {{C3: kernel.tile_multiply_add_packed: a word of codes does not have 9}}
  %u = kernel.tile_multiply_add_packed %t, %x[%i] rows %i step %i codes %w[%i] scale %x[%i] zero %x[%i] {bits = 4 : i64, depth = 9 : i64} : vector<1x2x16xf32>, memref<?xf32>, memref<?xui8>, memref<?xf32>, memref<?xf32> -> vector<1x2x16xf32>
  func.return
}
