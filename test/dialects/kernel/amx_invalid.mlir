// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @amx_begin_c1() {
  // expected-error@+1 {{C1: kernel.amx_begin: 2 x 3 accumulators and their factors take 11 of 8 registers}}
  kernel.amx_begin {rows = 2 : i64, columns = 3 : i64, pixels = 14 : i64, depth = 48 : i64}
  func.return
}

// -----

func.func @amx_begin_c2() {
  // expected-error@+1 {{C2: kernel.amx_begin: no register holds 14 pixels of 66 bytes}}
  kernel.amx_begin {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64, depth = 66 : i64}
  func.return
}

// -----

func.func @amx_store_c2(%y: memref<?xf32>) {
  // expected-error@+1 {{C2: kernel.amx_store: writes i32, not f32}}
  kernel.amx_store %y {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64} : memref<?xf32>
  func.return
}
