// RUN: rt-opt %s --split-input-file --verify-diagnostics

kernel.func @word(%x: memref<?xi32>, %i: index, %v: f32) {
  // expected-error@+1 {{the words for f32 are i64, not i32}}
  kernel.send_flagged %v flag %i, %x[%i] : f32, memref<?xi32>
  kernel.return
}

// -----

kernel.func @number(%x: memref<?xi32>, %i: index, %v: i16) {
  // expected-error@+1 {{moves floating-point numbers of 16 or 32 bits, not i16}}
  kernel.send_flagged %v flag %i, %x[%i] : i16, memref<?xi32>
  kernel.return
}

// -----

kernel.func @too_wide(%x: memref<?xi64>, %i: index) {
  // expected-error@+1 {{4 words are not read at once}}
  %v = kernel.receive_flagged %x[%i] flag %i {count = 4 : i64} : memref<?xi64> -> vector<4xf32>
  kernel.return
}

// -----

kernel.func @length(%x: memref<?xi32>, %i: index) {
  // expected-error@+1 {{gives 4 numbers per index}}
  %v = kernel.receive_flagged %x[%i, %i] flag %i {count = 4 : i64} : memref<?xi32> -> vector<4xf16>
  kernel.return
}

// -----

kernel.func @chains(%v: vector<6xf32>) {
  // expected-error@+1 {{6 is not a multiple of 4}}
  %s = kernel.dot_product %v, %v : vector<6xf32>, vector<6xf32>
  kernel.return
}
