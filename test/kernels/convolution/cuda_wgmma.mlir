// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// The pixels that a position of the window meets are copied by the device, tap by tap, into the left tile of a stage.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%images: !kernel.tensor_map<f16, [64, 64], swizzle = 128, spatial = 2>, %weights: !kernel.tensor_map<f16, [64, 64], swizzle = 128>
// CHECK:   %tiles = kernel.shared {alignment = 1024 : i64} : memref<24576xf16, "shared">
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 16384 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_window %images
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.load_window %images
// CHECK:   kernel.load_box %weights
// CHECK: } else {
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.warpgroup_mma f16 {{.*}} {columns = 64 : i64}
// CHECK:   kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.store_fragment {{.*}} valid
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x9x7xf16, #trt.dims<["2", "64", "9", "7"], order = [0, 2, 3, 1]>>) -> tensor<2x64x9x7xf16, #trt.dims<["2", "64", "9", "7"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma:64x64s3", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x9x7xf16, #trt.dims<["2", "64", "9", "7"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xf16>) -> tensor<2x64x9x7xf16, #trt.dims<["2", "64", "9", "7"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x9x7xf16, #trt.dims<["2", "64", "9", "7"], order = [0, 2, 3, 1]>>
}
