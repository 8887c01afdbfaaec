// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @tile_map(%t: vector<4x2x16xf32>) {
  // expected-error@+1 {{the body takes the element, its row, column and lane}}
  %u = kernel.tile_map %t : vector<4x2x16xf32> -> vector<4x2x16xf32> {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  func.return
}

// -----

func.func @tile_map_end(%t: vector<4x2x16xf32>) {
  // expected-error@+1 {{the body does not end with kernel.yield of an element}}
  %u = kernel.tile_map %t : vector<4x2x16xf32> -> vector<4x2x16xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    kernel.yield
  }
  func.return
}

// -----

func.func @tile_pool(%t: vector<4x2x16xf32>, %p: vector<2x2x16xf32>) {
  // expected-error@+1 {{windows of [2, 2] do not make vector<2x2x16xf32> of vector<4x2x16xf32>}}
  %q = kernel.tile_pool max %t into %p {window = array<i64: 2, 2>} : vector<4x2x16xf32>, vector<2x2x16xf32> -> vector<2x2x16xf32>
  func.return
}

// -----

func.func @tile_pool_kind(%t: vector<4x2x16xf32>, %p: vector<2x2x16xf32>) {
  // expected-error@+1 {{it adds or finds the extremes, it does not combine by mul}}
  %q = kernel.tile_pool mul %t into %p {window = array<i64: 2, 1>} : vector<4x2x16xf32>, vector<2x2x16xf32> -> vector<2x2x16xf32>
  func.return
}
