// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// A picture with three channels is copied first: pixels with four, so that the seven taps of a row are neighbours, 28
// elements of a line of 32. Then it is a convolution with windows one column wide, whose lines overlap: seven steps.
// CHECK: plan.launch {{.*}}kernel = @rows_
// CHECK: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @rows_{{[0-9a-f]+}}(%source: memref<?xf16>, [[COPY:%.*]]: memref<?xf16>)
// CHECK:   kernel.parallel
// CHECK-COUNT-3: kernel.load %source
// CHECK:   kernel.store_fragment {{.*}}, [[COPY]][{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true} : vector<4xf16>
// CHECK: kernel.return
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}(%output: memref<?xf16>, %images: !kernel.tensor_map<f16, [64, 32], swizzle = 64, spatial = 2>, %weights: !kernel.tensor_map<f16, [64, 32], swizzle = 64>){{.*}}block_size = 160 : i64
// CHECK:   [[STEPS:%.*]] = arith.constant 7 : index
// CHECK:   %tiles = kernel.shared {alignment = 1024 : i64} : memref<12288xf16, "shared">
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   %empty = kernel.shared : memref<3xi64, "shared">
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 8192 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_window %images
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.mbarrier_expect %full
// CHECK:   kernel.load_window %images
// CHECK:   kernel.load_box %weights
// CHECK: } else {
// CHECK:   scf.for {{.*}} to [[STEPS]] step
// CHECK:     kernel.mbarrier_wait %full
// CHECK:     kernel.warpgroup_mma f16 {{.*}} {columns = 64 : i64, line = 64 : i64} : vector<32xf32>
// CHECK-NEXT: kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:     kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<16xf16>
// CHECK: kernel.return
func.func @main(%x: tensor<2x3x32x32xf16>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<0.5> : tensor<64x3x7x7xf16>} : tensor<64x3x7x7xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_rows:64x64s3", stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 3, 3>, post_padding = array<i64: 3, 3>} : (tensor<2x3x32x32xf16>, tensor<64x3x7x7xf16>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>
}
