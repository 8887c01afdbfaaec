// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Depth to space: pixels of a row are neighbouring channels. A thread loads four columns of both and stores eight.
// CHECK: kernel.func @pointwise_{{[0-9a-f]+}}({{.*}}family = "pointwise"
// CHECK: kernel.parallel
// CHECK: %[[A:.*]] = kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK: %[[B:.*]] = kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK-NOT: kernel.load
// CHECK: kernel.fragment {{.*}} -> vector<8xf16>
// CHECK: kernel.store_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK-NOT: kernel.store
// CHECK: kernel.return
func.func @pixels(%x: tensor<4x2x2x64x56x56xf16>) -> tensor<4x64x56x2x56x2xf16> {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d3", "d5", "d1", "d2", "d4"]>]} : (tensor<4x2x2x64x56x56xf16>) -> tensor<4x64x56x2x56x2xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  func.return %y : tensor<4x64x56x2x56x2xf16>
}
