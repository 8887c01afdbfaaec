// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda features=tf32}" | filecheck %s

// float32 as the matrix units read it with TF32: a line of 128 bytes is 32 elements deep. Both lie along the depth. Copies round.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%output: memref<?xf32>, %matrix: !kernel.tensor_map<f32, [128, 32], swizzle = 128, tf32 = 1>, %weights: !kernel.tensor_map<f32, [128, 32], swizzle = 128, tf32 = 1>){{.*}}block_size = 384 : i64
// CHECK:   %tiles{{(_[0-9]+)?}} = kernel.shared {alignment = 1024 : i64} : memref<24576xf32, "shared">
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
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
// CHECK:   kernel.warpgroup_mma tf32 {{.*}} {columns = 128 : i64} : vector<64xf32>
// CHECK-NEXT: kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<32xf32>
// CHECK: kernel.return
func.func @main(%x: tensor<128x256xf32>) -> tensor<128x128xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<256x128xf32>} : tensor<256x128xf32>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:128x128s3"} : (tensor<128x256xf32>, tensor<256x128xf32>) -> tensor<128x128xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<128x128xf32>
}
