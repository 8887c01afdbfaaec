// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu}" | filecheck %s
// Columns of some rows are combined into memory of the worker by lanes, and from there the taps along each row.
// CHECK: kernel.func @window_rows_{{[0-9a-f]+}}({{.*}}family = "window_rows"
// CHECK: %[[KEPT:.*]] = kernel.worker_memory {elements = 4096 : i64} : memref<?xf32>
// CHECK: kernel.parallel({{.*}}) attributes {workers}
// CHECK: scf.for
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: %[[M:.*]] = arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: kernel.store %[[M]], %[[KEPT]]
// CHECK: scf.for
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: %[[A:.*]] = kernel.load %[[KEPT]][{{.*}}] strides [1, 2]
// CHECK: %[[B:.*]] = kernel.load %[[KEPT]][{{.*}}] strides [1, 1, 2]
// CHECK: %[[V:.*]] = arith.maximumf %[[A]], %[[B]]
// CHECK: kernel.store %[[V]]
// CHECK: kernel.return
func.func @pool(%x: tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32> {
  %y = fused.window max %x {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>,
      pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>}
      : (tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32> {
  ^bb0(%m: f32):
    fused.yield %m : f32
  }
  func.return %y : tensor<1x64x56x56xf32>
}
