// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Neighbouring threads read neighbouring channels of sixteen pixels, and write neighbouring pixels.
// CHECK: kernel.func @window_{{[0-9a-f]+}}({{.*}}block_size = 256 : i64{{.*}}family = "window"
// CHECK: kernel.shared : memref<1056xf32, "shared">
// CHECK: kernel.load {{.*}} : memref<?xf16>
// CHECK: arith.maximumf
// CHECK: kernel.store {{.*}} : f32, memref<1056xf32, "shared">
// CHECK: kernel.barrier
// CHECK: kernel.load {{.*}} : memref<1056xf32, "shared">
// CHECK: arith.truncf
// CHECK: kernel.store {{.*}} : f16, memref<?xf16>
// CHECK: kernel.return
func.func @sixteen(%x: tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>) -> tensor<2x64x8x8xf16> {
  %y = fused.window max %x {window = array<i64: 4, 4>, stride = array<i64: 4, 4>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<2x64x32x32xf16, #trt.dims<["2", "64", "32", "32"], order = [0, 2, 3, 1]>>) -> tensor<2x64x8x8xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<2x64x8x8xf16>
}
