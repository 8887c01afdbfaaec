// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" | filecheck %s --check-prefix=THREADS
// Each channel by itself: no products of matrices, a nest over pixels and channels whose innermost loop is over neighbours
// in memory.
// CHECK: kernel.func @depthwise_{{[0-9a-f]+}}({{.*}}family = "depthwise"
// CHECK-NOT: kernel.mma
// CHECK: kernel.parallel
// CHECK: scf.for
// CHECK: kernel.load
// CHECK: kernel.store
// CHECK: kernel.return
//
// Threads have eight channels of a pixel each. For a row of the window they read the weights, then the cells, none outside of
// the image; the accumulators of the eight channels go round.
// THREADS: kernel.func @depthwise_{{[0-9a-f]+}}(%input: memref<?xf16>, %output: memref<?xf16>, %weights: memref<?xf16>){{.*}}block_size = 128 : i64
// THREADS: scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32)
// THREADS-COUNT-3: kernel.load_fragment %weights[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// THREADS-NOT: kernel.load_fragment %weights
// THREADS-COUNT-3: kernel.load_fragment %input[{{.*}}] valid {{.*}} {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// THREADS-NOT: kernel.load_fragment
// THREADS: scf.yield
// THREADS: kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// THREADS: kernel.return
func.func @depthwise(%x: tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>) -> tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>> {
  %k = trt.constant {value = dense<0.5> : tensor<64x1x3x3xf16>} : tensor<64x1x3x3xf16>
  %a = fused.convolution %x, %k {fused.tactic = "cuda_depthwise", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 64 : i64} : (tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>, tensor<64x1x3x3xf16>) -> tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>
}
