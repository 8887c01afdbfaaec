// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" | filecheck %s --check-prefix=THREADS
// A thread has one or several neighbouring rows of the result. The largest element is looked for among the nearest cells
// of the input, which needs no condition; halves are compared as such.
// The columns of a small window follow one another without a loop.
// CHECK: kernel.func @window_{{[0-9a-f]+}}({{.*}}family = "window"
// CHECK: kernel.parallel
// CHECK-NOT: scf.for
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: kernel.load
// CHECK: arith.maximumf {{.*}} : f16
// CHECK: arith.extf
// CHECK-NOT: scf.if
// CHECK: kernel.store
// CHECK: kernel.return
//
// Threads have two channels each, and read the nine cells of the window.
// THREADS: kernel.func @window_{{[0-9a-f]+}}(%input: memref<?xf16>, %output: memref<?xf16>){{.*}}block_size = 128 : i64
// THREADS-COUNT-9: kernel.load_fragment %input[{{.*}}] {offsets = array<i64: 0, 1>, wide = true}
// THREADS-NOT: kernel.load
// THREADS: kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1>, wide = true}
// THREADS-NOT: kernel.store
// THREADS: kernel.return
func.func @pooling(%x: tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  %a = fused.window max %x {fused.tactic = "cuda_strips", window = array<i64: 3, 3>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>} : (tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<2x64x16x16xf16, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>
}
