// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// One launch from planes to planes: a thread has weights copied by the device, others load two pixels of eight channels
// each, store the channels of a pixel side by side, fence and arrive; warpgroups multiply two rows of pixels with the
// weights of a position of the window, whose pixels are some lines further, one after the other. The threads of a warp
// bring their results together in shared memory, from where the warp writes runs of planes.
// CHECK-COUNT-1: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @convolution_
// CHECK:   kernel.mbarrier_init %full{{.*}} {arrivals = 96 : i64}
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.mbarrier_wait %free
// CHECK:   kernel.mbarrier_expect %ready{{.*}} {bytes = 8192 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.load_fragment %input{{.*}} valid {{.*}} {offsets = array<i64: 0, 1>, wide = true}
// CHECK:   kernel.store_fragment {{.*}}, %boxes{{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK:   kernel.async_fence
// CHECK:   kernel.mbarrier_arrive %full
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.mbarrier_wait %ready
// CHECK-COUNT-2: kernel.warpgroup_mma f16 {{.*}}, %weights{{.*}}, %boxes{{.*}} {columns = 64 : i64, right_step = 8 : i64}
// CHECK:   kernel.warpgroup_wait {pending = 2 : i64}
// CHECK:   kernel.mbarrier_arrive %free
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.store_fragment {{.*}}, %runs{{.*}} {offsets = array<i64: 0, 1, 8, 9, {{.*}}>, wide = true}
// CHECK:   kernel.warp_barrier
// CHECK:   kernel.load_fragment %runs{{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK:   kernel.store_fragment {{.*}}, %output{{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK:   kernel.warp_barrier
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x16x64xf16>) -> tensor<2x64x16x64xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_wgmma_plane_boxes:64x4x64l128s2k4", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x16x64xf16>, tensor<64x64x3x3xf16>) -> tensor<2x64x16x64xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x16x64xf16>
}
