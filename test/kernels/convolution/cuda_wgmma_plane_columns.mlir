// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// Weights are the left tile of a stage. The right one has a line of 64 pixels for each of eight channels and of the taps
// of a column of the window: three and one of zeros. Positions along both sides of an image are one dimension; of each
// sixteen fourteen are results, and a thread stores as many of its eight pixels as are.
// CHECK: plan.launch {{.*}}sizes = ["2", "3", "8", "224"], steps = ["2048", "16", "256", "1"], box = [1, 4, 8, 64], swizzle = 128{{.*}}grid = [#plan.expression<"8">, #plan.expression<"1">, #plan.expression<"1">]
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%weights: !kernel.tensor_map<f16, [64, 64], swizzle = 128>, %planes: !kernel.tensor_map<f16, [1, 4, 8, 64], swizzle = 128>
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK-COUNT-2: kernel.load_box %planes
// CHECK:   kernel.warpgroup_mma f16 {{.*}} {columns = 64 : i64, right_by_depth
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}] valid {{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true, together = 2
// CHECK: kernel.return
func.func @main(%x: tensor<2x8x16x16xf16>) -> tensor<2x64x14x14xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x8x3x3xf16>} : tensor<64x8x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_plane_columns:64x64s3", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<2x8x16x16xf16>, tensor<64x8x3x3xf16>) -> tensor<2x64x14x14xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x14x14xf16>
}
