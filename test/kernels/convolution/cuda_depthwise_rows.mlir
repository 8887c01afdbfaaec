// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// In planes a thread has four columns of two rows. It loads the nine weights of the channel once, and of each line of the
// input the columns together and one cell on either side; no loop over the window is left.
// CHECK: kernel.func @depthwise_{{[0-9a-f]+}}({{.*}}family = "depthwise"
// CHECK: kernel.parallel
// CHECK: kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7, 8>} : memref<?xf32> -> vector<9xf32>
// CHECK: kernel.load_fragment {{.*}} valid {{.*}}{offsets = array<i64: 0>} : memref<?xf32> -> vector<1xf32>
// CHECK: kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3>, wide = true} : memref<?xf32> -> vector<4xf32>
// CHECK-NOT: scf.for
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: kernel.store_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK: kernel.return
func.func @depthwise(%x: tensor<4x64x32x32xf32>) -> tensor<4x64x32x32xf32> {
  %k = trt.constant {value = dense<0.5> : tensor<64x1x3x3xf32>} : tensor<64x1x3x3xf32>
  %a = fused.convolution %x, %k {fused.tactic = "cuda_depthwise_rows", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 64 : i64} : (tensor<4x64x32x32xf32>, tensor<64x1x3x3xf32>) -> tensor<4x64x32x32xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %a : tensor<4x64x32x32xf32>
}
