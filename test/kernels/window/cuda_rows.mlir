// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// A thread has eight columns of four rows of the result. Of each of six lines of the input it loads the eight columns
// together, and one cell on either side, which may be outside.
// CHECK: kernel.func @window_{{[0-9a-f]+}}({{.*}}family = "window"
// CHECK: kernel.parallel
// CHECK: kernel.load_fragment {{.*}} valid {{.*}}{offsets = array<i64: 0>}
// CHECK: kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK: kernel.load_fragment {{.*}} valid {{.*}}{offsets = array<i64: 0>}
// CHECK: arith.addf
// CHECK-NOT: arith.divf
// CHECK: kernel.store_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK: kernel.return
func.func @pooling(%x: tensor<8x64x56x56xf16>) -> tensor<8x64x56x56xf16> {
  %a = fused.window average %x {fused.tactic = "cuda_rows", window = array<i64: 3, 3>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>} : (tensor<8x64x56x56xf16>) -> tensor<8x64x56x56xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %a : tensor<8x64x56x56xf16>
}
