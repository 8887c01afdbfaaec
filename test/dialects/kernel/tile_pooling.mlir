// RUN: rt-opt %s | rt-opt | filecheck %s
// Tiles whose elements are computed one by one, and then combined with their neighbours.

// CHECK-LABEL: func.func @tile_map
func.func @tile_map(%t: vector<4x2x16xf32>, %n: index) {
  // CHECK: %u = kernel.tile_map %t valid %n : vector<4x2x16xf32> -> vector<4x2x16xf32> {
  %u = kernel.tile_map %t valid %n : vector<4x2x16xf32> -> vector<4x2x16xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    %w = arith.negf %v : f32
    kernel.yield %w : f32
  }
  func.return
}

// CHECK-LABEL: func.func @tile_pool
func.func @tile_pool(%t: vector<4x2x16xf32>, %p: vector<2x2x16xf32>) {
  // CHECK: %q = kernel.tile_pool max %t into %p {window = array<i64: 2, 1>} : vector<4x2x16xf32>, vector<2x2x16xf32> -> vector<2x2x16xf32>
  %q = kernel.tile_pool max %t into %p {window = array<i64: 2, 1>} : vector<4x2x16xf32>, vector<2x2x16xf32> -> vector<2x2x16xf32>
  func.return
}
