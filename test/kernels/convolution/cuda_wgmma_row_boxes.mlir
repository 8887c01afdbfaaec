// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// The copy of cuda_wgmma_rows, then boxes of its lines: the even and the odd ones come apart, as windows move on by two, and
// each of the seven lines of a window is a product of what lies in shared memory. All weights are copied once; warpgroups
// take turns, and the next one begins when all products have begun.
// CHECK: kernel.func @rows_{{[0-9a-f]+}}(%source: memref<?xf16>, [[COPY:%.*]]: memref<?xf16>)
// CHECK:   kernel.parallel
// CHECK-COUNT-3: kernel.load %source
// CHECK:   kernel.store_fragment {{.*}}, [[COPY]][{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true} : vector<4xf16>
// CHECK: kernel.return
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}(%output: memref<?xf16>, [[EVEN:%.*]]: !kernel.tensor_map<f16, [1, 10, 8, 32], swizzle = 64>, [[ODD:%.*]]: !kernel.tensor_map<f16, [1, 11, 8, 32], swizzle = 64>, [[WEIGHTS:%.*]]: !kernel.tensor_map<f16, [32, 32], swizzle = 64>)
// CHECK:   %boxes = kernel.shared {alignment = 1024 : i64} : memref<33792xf16, "shared">
// CHECK:   [[FILTERS:%.*]] = kernel.shared {alignment = 1024 : i64} : memref<7168xf16, "shared">
// CHECK:   %full = kernel.shared : memref<6xi64, "shared">
// CHECK:   %empty = kernel.shared : memref<6xi64, "shared">
// CHECK:   %order = kernel.shared : memref<2xi64, "shared">
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.each_warpgroup attributes {threads = 32 : i64} {
// CHECK:     kernel.mbarrier_expect %ready{{.*}} {bytes = 14336 : i64}
// CHECK:     kernel.load_box [[WEIGHTS]][{{.*}}], [[FILTERS]][
// CHECK:     kernel.wait_dependency
// CHECK:     kernel.mbarrier_wait %empty
// CHECK:     kernel.mbarrier_expect %full{{.*}} {bytes = 10752 : i64}
// CHECK:     kernel.load_box [[EVEN]][
// CHECK:     kernel.load_box [[ODD]][
// CHECK-NOT: kernel.load_box
// CHECK: } else {
// CHECK:   kernel.mbarrier_wait %ready
// CHECK:   kernel.each_warpgroup
// CHECK:     kernel.mbarrier_wait %order
// CHECK:     kernel.mbarrier_wait %full
// CHECK-COUNT-7: kernel.warpgroup_mma f16 {{.*}}, %boxes[{{.*}}], [[FILTERS]][{{.*}}] {columns = 32 : i64, line = 64 : i64, left_step = 8 : i64}
// CHECK-NOT: kernel.warpgroup_mma
// CHECK:     kernel.mbarrier_arrive %order
// CHECK:     kernel.warpgroup_accumulators
// CHECK:     kernel.mbarrier_arrive %empty
// CHECK:     kernel.store_fragment {{.*}}, %output[
// CHECK: kernel.return
func.func @main(%x: tensor<2x3x32x32xf16>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<0.5> : tensor<64x3x7x7xf16>} : tensor<64x3x7x7xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_row_boxes:8x8n32g2ts3", stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 3, 3>, post_padding = array<i64: 3, 3>} : (tensor<2x3x32x32xf16>, tensor<64x3x7x7xf16>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>
}
