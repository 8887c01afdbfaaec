// RUN: rt-opt %s --split-input-file --verify-diagnostics

kernel.func @whole_tiles(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %m = kernel.fill_fragment %c : f32 -> vector<2xf32>
  // expected-error@+1 {{vector<16xf32> is no 3 rows of tiles}}
  %r = kernel.reduce_rows max %s {rows = 3 : i64} : vector<16xf32> -> vector<6xf32>
  kernel.return
}

// -----

kernel.func @kinds(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %m = kernel.fill_fragment %c : f32 -> vector<2xf32>
  // expected-error@+1 {{adds or takes the largest, not mul}}
  %r = kernel.reduce_rows mul %s {rows = 1 : i64} : vector<16xf32> -> vector<2xf32>
  kernel.return
}

// -----

kernel.func @one_factor_per_row(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %m = kernel.fill_fragment %c : f32 -> vector<2xf32>
  // expected-error@+1 {{4 rows for each thread, not vector<2xf32>}}
  %r = kernel.scale_rows %s, %m {rows = 2 : i64} : vector<16xf32>, vector<2xf32> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @steps(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %m = kernel.fill_fragment %c : f32 -> vector<2xf32>
  // expected-error@+1 {{there is no step 2 of 2}}
  %r = kernel.pack_accumulators f16 %s {rows = 1 : i64, step = 2 : i64} : vector<16xf32> -> vector<4xi32>
  kernel.return
}

// -----

kernel.func @packed(%c: f32, %i: index) {
  %s = kernel.fill_fragment %c : f32 -> vector<16xf32>
  %m = kernel.fill_fragment %c : f32 -> vector<2xf32>
  // expected-error@+1 {{packs f16 or bf16, not tf32}}
  %r = kernel.pack_accumulators tf32 %s {rows = 1 : i64, step = 0 : i64} : vector<16xf32> -> vector<4xi32>
  kernel.return
}
