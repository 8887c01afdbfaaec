// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" --split-input-file | filecheck %s

// A product of persistent blocks: one warp copies tiles of both factors into a ring of four stages, which two warpgroups
// multiply. The copies of weights do not wait for the launch before; a stage is free again a step later.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}({{.*}}%matrix: !kernel.tensor_map<f16, [128, 64], swizzle = 128>, %weights: !kernel.tensor_map<f16, [128, 64], swizzle = 128>
// CHECK:   %tiles{{(_[0-9]+)?}} = kernel.shared {alignment = 1024 : i64} : memref<65536xf16, "shared">
// CHECK:   %full = kernel.shared : memref<4xi64, "shared">
// CHECK:   %empty = kernel.shared : memref<4xi64, "shared">
// CHECK:   kernel.mbarrier_init %full{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %empty{{.*}} {arrivals = 2 : i64}
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 32768 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.mbarrier_expect %full
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.load_box %weights
// CHECK: } else {
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.warpgroup_mma f16 {{.*}} {columns = 128 : i64}
// CHECK:   kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<32xf16>
// CHECK: kernel.return
func.func @main(%x: tensor<512x256xf16>) -> tensor<512x128xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<256x128xf16>} : tensor<256x128xf16>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:128x128s4"} : (tensor<512x256xf16>, tensor<256x128xf16>) -> tensor<512x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<512x128xf16>
}

// -----

// Two blocks of a cluster share a sum: each leaves its part in shared memory, and stores half of the results.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}([[OUTPUT:%.*]]: memref<?xf16>, %matrix
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   kernel.cluster_rank
// CHECK:   kernel.warpgroup_mma f16
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.store_fragment {{.*}}, %accumulators
// CHECK:   kernel.cluster_barrier
// CHECK:   kernel.remote_shared %accumulators
// CHECK:   kernel.remote_shared %accumulators
// CHECK:   kernel.store_fragment {{.*}}, [[OUTPUT]][
// CHECK:   kernel.cluster_barrier
// CHECK: kernel.return
func.func @main(%x: tensor<64x512xf16>) -> tensor<64x64xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<512x64xf16>} : tensor<512x64xf16>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:64x64s3c2"} : (tensor<64x512xf16>, tensor<512x64xf16>) -> tensor<64x64xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<64x64xf16>
}
