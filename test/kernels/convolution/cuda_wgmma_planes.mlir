// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// Weights are the left tile of a stage, the windows of an image's pixels the right one; each image is a product of its
// own. A thread has eight pixels of a channel that are neighbours in memory, and stores them at once.
// CHECK: plan.launch {{.*}}grid = [#plan.expression<"2">, #plan.expression<"1">, #plan.expression<"1">]
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%weights: !kernel.tensor_map<f16, [64, 64], swizzle = 128>, %images: !kernel.tensor_map<f16, [64, 64], swizzle = 128, spatial = 2>
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_window %images
// CHECK:   kernel.warpgroup_mma f16 {{.*}} {columns = 64 : i64}
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7, 32, 33, {{.*}}>, wide = true}
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x8x8xf16, #trt.dims<["2", "64", "8", "8"], order = [0, 2, 3, 1]>>) -> tensor<2x64x8x8xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_planes:64x64s3", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x8x8xf16, #trt.dims<["2", "64", "8", "8"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xf16>) -> tensor<2x64x8x8xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x8x8xf16>
}
