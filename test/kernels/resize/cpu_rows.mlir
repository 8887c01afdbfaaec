// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu}" | filecheck %s
// A row of the input is kept, and each lane finds its taps there by a table of places.
// CHECK: kernel.func @resize_rows_{{[0-9a-f]+}}({{.*}}family = "resize_rows"
// CHECK: %[[KEPT:.*]] = kernel.worker_memory {elements = 4096 : i64} : memref<?xf32>
// CHECK: kernel.parallel({{.*}}) attributes {workers}
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: kernel.store {{.*}}, %[[KEPT]]
// CHECK: kernel.parallel({{.*}}) attributes {lanes = 16 : i64}
// CHECK: %[[NUMBER:.*]] = kernel.load {{.*}} memref<?xi32> -> i32
// A place is clamped, so that no table can lead out of the row.
// CHECK: %[[LAST:.*]] = arith.minsi %[[NUMBER]]
// CHECK: %[[INSIDE:.*]] = arith.maxsi %[[LAST]]
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[INSIDE]] : i32 to index
// CHECK: kernel.load %[[KEPT]][%[[PLACE]]] strides [1]
// CHECK: kernel.return
func.func @resize(%x: tensor<1x64x40x40xf32>) -> tensor<1x64x80x80xf32> {
  %y = fused.resize linear %x {coordinate = #trt<coordinate half_pixel>} : (tensor<1x64x40x40xf32>) -> tensor<1x64x80x80xf32>
  func.return %y : tensor<1x64x80x80xf32>
}
