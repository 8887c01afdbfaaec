// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s
// Copies that the device makes by itself, barriers that count them, warpgroups that multiply, clusters.

// CHECK:      kernel.func @copies(%m: !kernel.tensor_map<f16, [64, 64], swizzle = 128>, %w: !kernel.tensor_map<f16, [128, 64], swizzle = 128, spatial = 2>) attributes {block_size = 160 : i64, cluster = 2 : i64, dependent_launch} {
// CHECK:        %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
// CHECK-NEXT:   %full = kernel.shared : memref<4xi64, "shared">
// CHECK-NEXT:   kernel.mbarrier_init %full[%i] {arrivals = 1 : i64} : memref<4xi64, "shared">
// CHECK-NEXT:   kernel.mbarrier_fence
// CHECK-NEXT:   kernel.mbarrier_expect %full[%i] {bytes = 24576 : i64} : memref<4xi64, "shared">
// CHECK-NEXT:   kernel.load_box %m[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>, memref<12288xf16, "shared">, memref<4xi64, "shared">
// CHECK-NEXT:   kernel.load_window %w[%i, %i, %i, %i] offsets[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [128, 64], swizzle = 128, spatial = 2>, memref<12288xf16, "shared">, memref<4xi64, "shared">
// CHECK-NEXT:   kernel.mbarrier_wait %full[%i] parity %i : memref<4xi64, "shared">
// CHECK-NEXT:   kernel.async_fence
// CHECK-NEXT:   kernel.mbarrier_arrive %full[%i] : memref<4xi64, "shared">
kernel.func @copies(%m: !kernel.tensor_map<f16, [64, 64], swizzle = 128>, %w: !kernel.tensor_map<f16, [128, 64], swizzle = 128, spatial = 2>) attributes {block_size = 160 : i64, cluster = 2 : i64, dependent_launch} {
  %i = arith.constant 0 : index
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  %full = kernel.shared : memref<4xi64, "shared">
  kernel.mbarrier_init %full[%i] {arrivals = 1 : i64} : memref<4xi64, "shared">
  kernel.mbarrier_fence
  kernel.mbarrier_expect %full[%i] {bytes = 24576 : i64} : memref<4xi64, "shared">
  kernel.load_box %m[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>, memref<12288xf16, "shared">, memref<4xi64, "shared">
  kernel.load_window %w[%i, %i, %i, %i] offsets [%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f16, [128, 64], swizzle = 128, spatial = 2>, memref<12288xf16, "shared">, memref<4xi64, "shared">
  kernel.mbarrier_wait %full[%i] parity %i : memref<4xi64, "shared">
  kernel.async_fence
  kernel.mbarrier_arrive %full[%i] : memref<4xi64, "shared">
  kernel.return
}

// CHECK:      kernel.func @warpgroups
// CHECK:        kernel.set_registers {count = 40 : i64}
// CHECK-NEXT:   kernel.set_registers {count = 232 : i64, grow = true}
// CHECK-NEXT:   %g = kernel.warp_value %i : index
// CHECK-NEXT:   %c = kernel.fill_fragment %z : f32 -> vector<64xf32>
// CHECK-NEXT:   %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 128 : i64, right_by_depth} : vector<64xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<64xf32>
// CHECK-NEXT:   %next = kernel.warpgroup_mma f16 %d, %tiles[%i], %tiles[%i] {columns = 128 : i64, left_step = 10 : i64, right_step = 12 : i64} : vector<64xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<64xf32>
// CHECK-NEXT:   kernel.warpgroup_wait {pending = 1 : i64}
// CHECK-NEXT:   %s = kernel.warpgroup_accumulators %next : vector<64xf32> -> vector<64xf32>
// CHECK-NEXT:   %r = kernel.join_columns %s {width = 8 : i64} : vector<64xf32> -> vector<64xf32>
// CHECK-NEXT:   %p = kernel.fragment_part %r {position = 32 : i64} : vector<64xf32> -> vector<32xf32>
// CHECK-NEXT:   %y = kernel.map_fragment %p, %z : vector<32xf32>, f32 -> vector<32xf16> {
// CHECK-NEXT:   ^{{.*}}(%a: f32, %b: f32):
// CHECK-NEXT:     %e = arith.addf %a, %b : f32
// CHECK-NEXT:     %h = arith.truncf %e : f32 to f16
// CHECK-NEXT:     kernel.yield %h : f16
// CHECK:        %n = kernel.saturate_fragment %q : vector<16xi32> -> vector<16xui8>
// CHECK-NEXT:   %f = kernel.float_fragment %n : vector<16xui8> -> vector<16xf32>
kernel.func @warpgroups(%x: memref<?xf16>) attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
  kernel.set_registers {count = 40 : i64}
  kernel.set_registers {count = 232 : i64, grow = true}
  %g = kernel.warp_value %i : index
  %c = kernel.fill_fragment %z : f32 -> vector<64xf32>
  %d = kernel.warpgroup_mma f16 %c, %tiles[%i], %tiles[%i] {columns = 128 : i64, right_by_depth} : vector<64xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<64xf32>
  %next = kernel.warpgroup_mma f16 %d, %tiles[%i], %tiles[%i] {columns = 128 : i64, left_step = 10 : i64, right_step = 12 : i64} : vector<64xf32>, memref<12288xf16, "shared">, memref<12288xf16, "shared"> -> vector<64xf32>
  kernel.warpgroup_wait {pending = 1 : i64}
  %s = kernel.warpgroup_accumulators %next : vector<64xf32> -> vector<64xf32>
  %r = kernel.join_columns %s {width = 8 : i64} : vector<64xf32> -> vector<64xf32>
  %p = kernel.fragment_part %r {position = 32 : i64} : vector<64xf32> -> vector<32xf32>
  %y = kernel.map_fragment %p, %z : vector<32xf32>, f32 -> vector<32xf16> {
  ^bb0(%a: f32, %b: f32):
    %e = arith.addf %a, %b : f32
    %h = arith.truncf %e : f32 to f16
    kernel.yield %h : f16
  }
  %one = arith.constant 1 : i32
  %q = kernel.fill_fragment %one : i32 -> vector<16xi32>
  %n = kernel.saturate_fragment %q : vector<16xi32> -> vector<16xui8>
  %f = kernel.float_fragment %n : vector<16xui8> -> vector<16xf32>
  kernel.return
}

// CHECK:      kernel.func @turns
// CHECK:        kernel.each_warpgroup {
// CHECK-NEXT:     %g = kernel.warp_value %i : index
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   kernel.each_warpgroup attributes {threads = 32 : i64} {
kernel.func @turns(%x: memref<?xf16>) attributes {block_size = 256 : i64} {
  %i = arith.constant 0 : index
  kernel.each_warpgroup {
    %g = kernel.warp_value %i : index
    kernel.yield
  }
  kernel.each_warpgroup attributes {threads = 32 : i64} {
    kernel.yield
  }
  kernel.return
}

// CHECK:      kernel.func @clusters
// CHECK:        %rank = kernel.cluster_rank : index
// CHECK-NEXT:   kernel.cluster_barrier
// CHECK-NEXT:   %other = kernel.remote_shared %accumulators of %rank : memref<64xf32, "shared"> -> memref<64xf32, "cluster">
// CHECK-NEXT:   kernel.wait_dependency
// CHECK-NEXT:   kernel.launch_dependents
kernel.func @clusters(%x: memref<?xf32>) attributes {block_size = 32 : i64, cluster = 4 : i64} {
  %accumulators = kernel.shared : memref<64xf32, "shared">
  %rank = kernel.cluster_rank : index
  kernel.cluster_barrier
  %other = kernel.remote_shared %accumulators of %rank : memref<64xf32, "shared"> -> memref<64xf32, "cluster">
  kernel.wait_dependency
  kernel.launch_dependents
  kernel.return
}

// CHECK:      kernel.func @rounded(%m: !kernel.tensor_map<f32, [64, 32], swizzle = 128, tf32 = 1>, %w: !kernel.tensor_map<f32, [64, 32], swizzle = 128, spatial = 2, tf32 = 1>)
// CHECK:        %d = kernel.warpgroup_mma tf32 %c, %tiles[%i], %tiles[%i]
kernel.func @rounded(%m: !kernel.tensor_map<f32, [64, 32], swizzle = 128, tf32 = 1>, %w: !kernel.tensor_map<f32, [64, 32], swizzle = 128, spatial = 2, tf32 = 1>) attributes {block_size = 128 : i64} {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %tiles = kernel.shared {alignment = 1024 : i64} : memref<4096xf32, "shared">
  %full = kernel.shared : memref<1xi64, "shared">
  kernel.load_box %m[%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f32, [64, 32], swizzle = 128, tf32 = 1>, memref<4096xf32, "shared">, memref<1xi64, "shared">
  kernel.load_window %w[%i, %i, %i, %i] offsets [%i, %i], %tiles[%i], %full[%i] : !kernel.tensor_map<f32, [64, 32], swizzle = 128, spatial = 2, tf32 = 1>, memref<4096xf32, "shared">, memref<1xi64, "shared">
  %c = kernel.fill_fragment %z : f32 -> vector<16xf32>
  %d = kernel.warpgroup_mma tf32 %c, %tiles[%i], %tiles[%i] {columns = 32 : i64} : vector<16xf32>, memref<4096xf32, "shared">, memref<4096xf32, "shared"> -> vector<16xf32>
  kernel.return
}
