// RUN: rt-opt %s --split-input-file --verify-diagnostics
// What Hopper's ops refuse.

kernel.func @box_of_another_rank(%m: !kernel.tensor_map<f16, [64, 64], swizzle = 128>) attributes {block_size = 32 : i64} {
  %i = arith.constant 0 : index
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<4096xf16, "shared">
  %full = kernel.shared : memref<1xi64, "shared">
  // expected-error@+1 {{1 coordinates for a tensor with 2 dimensions}}
  kernel.load_box %m[%i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>, memref<4096xf16, "shared">, memref<1xi64, "shared">
  kernel.return
}

// -----

kernel.func @box_of_another_element(%m: !kernel.tensor_map<f16, [64, 64], swizzle = 128>) attributes {block_size = 32 : i64} {
  %i = arith.constant 0 : index
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<4096xf32, "shared">
  %full = kernel.shared : memref<1xi64, "shared">
  // expected-error@+1 {{copies f16 to shared memory}}
  kernel.load_box %m[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>, memref<4096xf32, "shared">, memref<1xi64, "shared">
  kernel.return
}

// -----

kernel.func @barriers_elsewhere(%b: memref<?xi64>) attributes {block_size = 32 : i64} {
  %i = arith.constant 0 : index
  // expected-error@+1 {{barriers are i64 in shared memory}}
  kernel.mbarrier_arrive %b[%i] : memref<?xi64>
  kernel.return
}

// -----

kernel.func @sums_of_another_size() attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<32xf32>
  // expected-error@+1 {{the accumulators are vector<64xf32>, not vector<32xf32>}}
  %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 128 : i64} : vector<32xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<32xf32>
  kernel.return
}

// -----

kernel.func @pieces_of_columns() attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  // expected-error@+1 {{32 columns are no pieces of 64}}
  %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64, right_by_depth} : vector<16xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @registers() attributes {block_size = 128 : i64} {
  // expected-error@+1 {{100 is no multiple of 8 from 24 to 256}}
  kernel.set_registers {count = 100 : i64}
  kernel.return
}

// -----

kernel.func @elements_of_maps(%x: f32) attributes {block_size = 32 : i64} {
  %v = kernel.fill_fragment %x : f32 -> vector<4xf32>
  // expected-error@+1 {{the region yields one element of vector<4xf16>}}
  %y = kernel.map_fragment %v : vector<4xf32> -> vector<4xf16> {
  ^bb0(%a: f32):
    kernel.yield %a : f32
  }
  kernel.return
}

// -----

kernel.func @parts(%x: f32) attributes {block_size = 32 : i64} {
  %v = kernel.fill_fragment %x : f32 -> vector<4xf32>
  // expected-error@+1 {{3 elements from 2 on of vector<4xf32>}}
  %y = kernel.fragment_part %v {position = 2 : i64} : vector<4xf32> -> vector<3xf32>
  kernel.return
}

// -----

// expected-error@+1 {{a line of 24 bytes is no multiple of 16}}
kernel.func @lines(%m: !kernel.tensor_map<f16, [64, 12]>) attributes {block_size = 32 : i64} {
  kernel.return
}

// -----

// expected-error@+1 {{lines of 64 bytes cannot be swizzled as 128 bytes}}
kernel.func @swizzled_lines(%m: !kernel.tensor_map<f16, [64, 32], swizzle = 128>) attributes {block_size = 32 : i64} {
  kernel.return
}

// -----

kernel.func @short_lines() attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  // expected-error@+1 {{no lines of 32 bytes}}
  %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64, line = 32 : i64} : vector<16xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @wide_limits() attributes {block_size = 128 : i64} {
  %one = arith.constant 1 : i32
  %q = kernel.fill_fragment %one : i32 -> vector<16xi32>
  // expected-error@+1 {{i32 become bytes, not i32 i16}}
  %n = kernel.saturate_fragment %q : vector<16xi32> -> vector<16xi16>
  kernel.return
}

// -----

kernel.func @floats_of_words() attributes {block_size = 128 : i64} {
  %one = arith.constant 1 : i32
  %q = kernel.fill_fragment %one : i32 -> vector<16xi32>
  // expected-error@+1 {{bytes become f32, not i32 f32}}
  %f = kernel.float_fragment %q : vector<16xi32> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @rows_over_each_other() attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  // expected-error@+1 {{no rows of lines along the depth can lie 4 lines apart}}
  %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64, left_step = 4 : i64} : vector<16xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<16xf32>
  kernel.return
}

// -----

// expected-error@+1 {{only f32 is rounded to tf32 (0 or 1), not f16}}
kernel.func @halves_rounded(%m: !kernel.tensor_map<f16, [64, 64], swizzle = 128, tf32 = 1>) attributes {block_size = 32 : i64} {
  kernel.return
}

// -----

kernel.func @bits_cut_off(%m: !kernel.tensor_map<f32, [64, 32], swizzle = 128>) attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<4096xf32, "shared">
  %full = kernel.shared : memref<1xi64, "shared">
  kernel.load_box %m[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f32, [64, 32], swizzle = 128>, memref<4096xf32, "shared">, memref<1xi64, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  // expected-error@+1 {{kernel.load_box does not round to tf32}}
  %d = kernel.warpgroup_mma tf32 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64} : vector<16xf32>, memref<4096xf32, "shared">, memref<4096xf32, "shared"> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @written_by_threads(%x: memref<?xf32>) attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<4096xf32, "shared">
  kernel.copy_async %x[%i], %tiles[%i] {count = 4 : i64} : memref<?xf32>, memref<4096xf32, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  // expected-error@+1 {{kernel.copy_async does not round to tf32}}
  %d = kernel.warpgroup_mma tf32 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64} : vector<16xf32>, memref<4096xf32, "shared">, memref<4096xf32, "shared"> -> vector<16xf32>
  kernel.return
}
