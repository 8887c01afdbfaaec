// RUN: rt-opt %s | rt-opt | filecheck %s
// Weights of few bits become tiles of numbers, or are multiplied at once.

// CHECK-LABEL: func.func @tile_load_packed
func.func @tile_load_packed(%w: memref<?xui8>, %s: memref<?xf32>, %z: memref<?xui8>, %i: index) {
  // CHECK: %t = kernel.tile_load_packed codes %w[%i] scale %s[%i] zero %z[%i] {bits = 4 : i64, depth = 8 : i64} : memref<?xui8>, memref<?xf32>, memref<?xui8> -> vector<8x2x16xf32>
  %t = kernel.tile_load_packed codes %w[%i] scale %s[%i] zero %z[%i] {bits = 4 : i64, depth = 8 : i64} : memref<?xui8>, memref<?xf32>, memref<?xui8> -> vector<8x2x16xf32>
  func.return
}

// CHECK-LABEL: func.func @tile_multiply_add_packed
func.func @tile_multiply_add_packed(%t: vector<1x2x16xf32>, %x: memref<?xf32>, %w: memref<?xui8>, %s: memref<?xf32>, %z: memref<?xui8>, %i: index) {
  // CHECK: %u = kernel.tile_multiply_add_packed %t, %x[%i] rows %i step %i codes %w[%i] scale %s[%i] zero %z[%i] {bits = 4 : i64, depth = 8 : i64} : vector<1x2x16xf32>, memref<?xf32>, memref<?xui8>, memref<?xf32>, memref<?xui8> -> vector<1x2x16xf32>
  %u = kernel.tile_multiply_add_packed %t, %x[%i] rows %i step %i codes %w[%i] scale %s[%i] zero %z[%i] {bits = 4 : i64, depth = 8 : i64} : vector<1x2x16xf32>, memref<?xf32>, memref<?xui8>, memref<?xf32>, memref<?xui8> -> vector<1x2x16xf32>
  func.return
}
