// RUN: rt-opt %s --split-input-file -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// One launch from planes to planes: a thread loads a channel's pixel from each of eight planes and stores them side by
// side, warps multiply, and by way of shared memory each thread writes four neighbouring pixels of a channel.
// CHECK-COUNT-1: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @convolution_
// CHECK:   kernel.load_fragment %input{{.*}} stride {{.*}} valid {{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>}
// CHECK:   kernel.store_fragment {{.*}}, %pixels{{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK:   kernel.barrier
// CHECK:   kernel.load_matrix %pixels
// CHECK:   kernel.mma f16 {{.*}} {rows = 2 : i64, columns = 4 : i64}
// CHECK:   kernel.store_fragment {{.*}}, %accumulators
// CHECK:   kernel.barrier
// CHECK:   kernel.load_fragment %accumulators
// CHECK:   kernel.store_fragment {{.*}}, %output{{.*}} {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK: kernel.return
func.func @main(%x: tensor<2x8x32x32xf16>) -> tensor<2x32x32x32xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<32x8x3x3xf16>} : tensor<32x8x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_plane_tiles:32x32", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x8x32x32xf16>, tensor<32x8x3x3xf16>) -> tensor<2x32x32x32xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x32x32x32xf16>
}

// -----

// Windows are pooled on their way through shared memory: a thread writes one number for each of its windows.
// CHECK: func.func @main
// CHECK-COUNT-1: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @convolution_
// CHECK:   kernel.mma f16
// CHECK:   kernel.store_fragment {{.*}}, %accumulators
// CHECK:   kernel.barrier
// CHECK:   kernel.load_fragment %accumulators{{.*}} {offsets = array<i64: 0, 1>, wide = true}
// CHECK:   arith.maximumf
// CHECK-NOT: kernel.shuffle
// CHECK: kernel.return
func.func @main(%x: tensor<2x8x32x32xf16>) -> tensor<2x32x16x16xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<32x8x3x3xf16>} : tensor<32x8x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_plane_tiles:32x32", pooling = #fused.pooling<max [2, 2]>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x8x32x32xf16>, tensor<32x8x3x3xf16>) -> tensor<2x32x16x16xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x32x16x16xf16>
}

// -----

// Threads of a channel add up what they have of a tile.
// CHECK: func.func @main
// CHECK-COUNT-1: plan.launch {{.*}}kernel = @convolution_
// CHECK: kernel.func @convolution_
// CHECK:   kernel.load_fragment %accumulators{{.*}} {offsets = array<i64: 0, 1>, wide = true}
// CHECK:   arith.maximumf
// CHECK-COUNT-4: kernel.shuffle
// CHECK: kernel.return
func.func @main(%x: tensor<2x8x32x32xf16>) -> tensor<2x32x4x1xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<32x8x3x3xf16>} : tensor<32x8x3x3xf16>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_plane_tiles:32x32", pooling = #fused.pooling<max [2, 2]>, totals = #fused.totals<[4, 16] of [16, 16]>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x8x32x32xf16>, tensor<32x8x3x3xf16>) -> tensor<2x32x4x1xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<2x32x4x1xf32>
}
