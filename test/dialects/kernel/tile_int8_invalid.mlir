// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @tile_dot_add_c1(%t: vector<4x1x8xi32>, %x: memref<?xi8>, %w: memref<?xi8>, %i: index) {
  // expected-error@+1 {{C2: kernel.tile_dot_add: adds ui8 times i8 to i32, not i32, i8, i8}}
  %s = kernel.tile_dot_add %t, %x[%i] rows %i, %w[%i] {depth = 2 : i64} : vector<4x1x8xi32>, memref<?xi8>, memref<?xi8> -> vector<4x1x8xi32>
  func.return
}

// -----

func.func @tile_dot_add_c4(%t: vector<4x1x8xi32>, %x: memref<?xui8>, %w: memref<?xi8>, %i: index) {
  // expected-error@+1 {{C4: kernel.tile_dot_add: the offset 3 is unknown}}
  %s = kernel.tile_dot_add %t, %x[%i] rows %i, %w[%i] {depth = 2 : i64, offset = 3 : i64} : vector<4x1x8xi32>, memref<?xui8>, memref<?xi8> -> vector<4x1x8xi32>
  func.return
}

// -----

func.func @tile_dot_add_c2(%t: vector<4x1x8xi32>, %x: memref<?xui8>, %w: memref<?xi8>, %i: index) {
  // expected-error@+1 {{C3: kernel.tile_dot_add: 5 of 4 bytes cannot be read}}
  %s = kernel.tile_dot_add %t, %x[%i] rows %i, %w[%i] {depth = 2 : i64, last = 5 : i64} : vector<4x1x8xi32>, memref<?xui8>, memref<?xi8> -> vector<4x1x8xi32>
  func.return
}

// -----

func.func @tile_dot_add(%t: vector<4x8xi32>, %x: memref<?xui8>, %w: memref<?xi8>, %i: index) {
  // expected-error@+1 {{a tile is a vector of rows x columns x lanes, not vector<4x8xi32>}}
  %s = kernel.tile_dot_add %t, %x[%i] rows %i, %w[%i] {depth = 2 : i64} : vector<4x8xi32>, memref<?xui8>, memref<?xi8> -> vector<4x8xi32>
  func.return
}

// -----

func.func @tile_multiply_add_c2(%t: vector<4x1x8xf32>, %x: memref<?xf32>, %w: memref<?xf32>, %i: index) {
  // expected-error@+1 {{C2: kernel.tile_multiply_add: has no halves to multiply}}
  %s = kernel.tile_multiply_add %t, %x[%i] rows %i step %i, %w[%i] {depth = 2 : i64, halves} : vector<4x1x8xf32>, memref<?xf32>, memref<?xf32> -> vector<4x1x8xf32>
  func.return
}
