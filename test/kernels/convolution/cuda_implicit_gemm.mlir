// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// The window as rows of a product: weights are copied, the pixels of the next tile are loaded before this one is
// multiplied, and stored to shared memory after.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}block_size = 128 : i64
// CHECK:   %tiles = kernel.shared
// CHECK: kernel.fill_fragment
// CHECK: scf.for
// CHECK: %[[PIXELS:.*]] = kernel.load_fragment
// CHECK-COUNT-2: kernel.copy_async
// CHECK: kernel.commit_async
// CHECK: kernel.mma f16
// CHECK: kernel.mma f16
// CHECK: kernel.store_fragment %[[PIXELS]], %tiles
// CHECK: kernel.wait_async
// CHECK-NEXT: kernel.barrier
// CHECK: kernel.return
func.func @images(%x: tensor<2x64x32x32xf16>) -> tensor<2x64x32x32xf16> {
  %k = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %a = fused.convolution %x, %k {fused.tactic = "cuda_implicit_gemm:64x64", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x32x32xf16>, tensor<64x64x3x3xf16>) -> tensor<2x64x32x32xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<2x64x32x32xf16>
}
