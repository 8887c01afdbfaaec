// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu},map-parallel-to-workers" | filecheck %s
// A small step of the last loop is part of the code, so that its lanes are picked out of whole vectors; others are not.
// CHECK: kernel.func @pointwise_{{[0-9a-f]+}}(
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: kernel.load {{.*}} strides [2, 2]
// CHECK: kernel.store {{.*}} strides [1, 1]
// CHECK: kernel.return
// CHECK: kernel.func @pointwise_{{[0-9a-f]+}}(
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: kernel.load {{.*}} strides [%[[STEP:[a-z0-9_]+]], %[[STEP]]]
// CHECK: kernel.return
func.func @every_other(%x: tensor<64x100xf32>, %z: tensor<64x500xf32>) -> (tensor<64x50xf32>, tensor<64x50xf32>) {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "2*d1"]>]} : (tensor<64x100xf32>) -> tensor<64x50xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  %w = fused.pointwise %z {access = [#fused.access<["d0", "10*d1"]>]} : (tensor<64x500xf32>) -> tensor<64x50xf32> {
  ^bb0(%v: f32):
    fused.yield %v : f32
  }
  func.return %y, %w : tensor<64x50xf32>, tensor<64x50xf32>
}
