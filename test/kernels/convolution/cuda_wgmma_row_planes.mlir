// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// A picture with three channels is copied first, as for `cuda_wgmma_rows`. Then weights are the left tile of a stage and
// windows the right one; each image is a product of its own, and a thread stores eight pixels of a channel at once.
// CHECK: plan.launch {{.*}}kernel = @rows_
// CHECK: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @rows_
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%weights: !kernel.tensor_map<f16, [64, 32], swizzle = 64>, %images: !kernel.tensor_map<f16, [64, 32], swizzle = 64, spatial = 2>
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_window %images
// CHECK:   kernel.warpgroup_mma f16 {{.*}} {columns = 64 : i64, line = 64 : i64}
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7, 32, 33, {{.*}}>, wide = true}
// CHECK: kernel.return
func.func @main(%x: tensor<2x3x32x32xf16>) -> tensor<2x64x16x16xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x3x7x7xf16>} : tensor<64x3x7x7xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_row_planes:64x64s3", stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 3, 3>, post_padding = array<i64: 3, 3>} : (tensor<2x3x32x32xf16>, tensor<64x3x7x7xf16>) -> tensor<2x64x16x16xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x16x16xf16>
}
