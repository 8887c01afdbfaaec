// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// All weights are copied once, and for each tile of 8 x 8 pixels a box of 10 x 10, by a warp for each warpgroup. The nine
// positions of the window begin at lines of that box; its rows are 10 lines apart. Nothing is waited for in between, and
// the next warpgroup begins when all products have begun.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%pixels: !kernel.tensor_map<f16, [1, 10, 10, 64], swizzle = 128>, %weights: !kernel.tensor_map<f16, [64, 64], swizzle = 128>{{.*}}block_size = 320 : i64
// CHECK:   %[[LINE:.*]] = arith.constant 64 : index
// CHECK:   %[[ROW:.*]] = arith.constant 640 : index
// CHECK:   %boxes = kernel.shared {alignment = 1024 : i64} : memref<13312xf16, "shared">
// CHECK:   %weights_1 = kernel.shared {alignment = 1024 : i64} : memref<36864xf16, "shared">
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.each_warpgroup attributes {threads = 32 : i64} {
// CHECK:     kernel.mbarrier_expect %ready{{.*}} {bytes = 73728 : i64}
// CHECK:     kernel.load_box %weights
// CHECK:     kernel.wait_dependency
// CHECK:     kernel.mbarrier_wait %empty
// CHECK:     kernel.mbarrier_expect %full{{.*}} {bytes = 12800 : i64}
// CHECK:     kernel.load_box %pixels
// CHECK: } else {
// CHECK:   kernel.mbarrier_wait %ready
// CHECK:   kernel.each_warpgroup
// CHECK:     kernel.mbarrier_wait %order
// CHECK:     kernel.mbarrier_wait %full
// CHECK:     %[[SECOND:.*]] = arith.addi %[[START:.*]], %[[LINE]] : index
// CHECK:     kernel.warpgroup_mma f16 {{.*}}, %boxes[%[[SECOND]]], %weights_1[{{.*}}] {columns = 64 : i64, left_step = 10 : i64}
// CHECK:     %[[FOURTH:.*]] = arith.addi %[[START]], %[[ROW]] : index
// CHECK:     kernel.warpgroup_mma f16 {{.*}}, %boxes[%[[FOURTH]]], %weights_1[{{.*}}] {columns = 64 : i64, left_step = 10 : i64}
// CHECK-COUNT-5: kernel.warpgroup_mma
// CHECK:     kernel.mbarrier_arrive %order
// CHECK:     kernel.warpgroup_accumulators
// CHECK:     kernel.mbarrier_arrive %empty
// CHECK:     kernel.store_fragment
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x16x8xf16, #trt.dims<["2", "64", "16", "8"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x8xf16, #trt.dims<["2", "64", "16", "8"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_boxes:8x8n64g2ts1", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x16x8xf16, #trt.dims<["2", "64", "16", "8"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xf16>) -> tensor<2x64x16x8xf16, #trt.dims<["2", "64", "16", "8"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x16x8xf16, #trt.dims<["2", "64", "16", "8"], order = [0, 2, 3, 1]>>
}
