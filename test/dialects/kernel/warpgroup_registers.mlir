// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK: %d = kernel.warpgroup_mma_registers f16 %s, (%p, %p, %p, %p), %v[%i] {columns = 64 : i64} : vector<32xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared"> -> vector<32xf32>
kernel.func @registers(%c: f32, %n: i32, %i: index) {
  %v = kernel.shared {alignment = 1024 : i64} : memref<4096xf16, "shared">
  %s = kernel.fill_fragment %c : f32 -> vector<32xf32>
  %p = kernel.fill_fragment %n : i32 -> vector<4xi32>
  %d = kernel.warpgroup_mma_registers f16 %s, (%p, %p, %p, %p), %v[%i] {columns = 64 : i64} : vector<32xf32>, (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>), memref<4096xf16, "shared"> -> vector<32xf32>
  kernel.return
}
