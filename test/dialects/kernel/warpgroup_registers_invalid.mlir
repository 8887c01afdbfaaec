// RUN: rt-opt %s --split-input-file --verify-diagnostics

kernel.func @columns(%s: vector<16xf32>, %p: vector<4xi32>, %i: index) {
  %v = kernel.shared : memref<4096xf16, "shared">
  // expected-error@+1 {{columns are a multiple of 64 up to 256, not 32}}
  %d = kernel.warpgroup_mma_registers f16 %s, (%p, %p, %p, %p), %v[%i] {columns = 32 : i64} : vector<16xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared"> -> vector<16xf32>
  kernel.return
}

// -----

kernel.func @fragments(%s: vector<32xf32>, %p: vector<4xi32>, %i: index) {
  %v = kernel.shared : memref<4096xf16, "shared">
  // expected-error@+1 {{takes 4 left fragments of four i32}}
  %d = kernel.warpgroup_mma_registers f16 %s, (%p, %p), %v[%i] {columns = 64 : i64} : vector<32xf32>, (vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared"> -> vector<32xf32>
  kernel.return
}

// -----

kernel.func @kinds(%s: vector<32xf32>, %p: vector<4xi32>, %i: index) {
  %v = kernel.shared : memref<4096xf16, "shared">
  // expected-error@+1 {{f16 or bf16, not tf32}}
  %d = kernel.warpgroup_mma_registers tf32 %s, (%p, %p, %p, %p), %v[%i] {columns = 64 : i64} : vector<32xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared"> -> vector<32xf32>
  kernel.return
}
