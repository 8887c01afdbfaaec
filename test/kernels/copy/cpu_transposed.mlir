// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu}" | filecheck %s
// 16 rows of pixels become 16 vectors of channels; what is left of a row has a square of its own.
// CHECK: kernel.func @reformat_transposed_{{[0-9a-f]+}}({{.*}}family = "reformat_transposed"
// CHECK: kernel.parallel({{.*}}) attributes {workers}
// CHECK: scf.if
// CHECK: %[[SQUARE:.*]] = kernel.tile_load_transposed {{.*}} : memref<?xf32> -> vector<16x1x16xf32>
// CHECK: kernel.tile_for_each %[[SQUARE]] : vector<16x1x16xf32>
// CHECK: kernel.store
// CHECK: } else {
// CHECK: kernel.tile_load_transposed {{.*}} valid %[[LEFT:[a-z0-9_]+]] : memref<?xf32> -> vector<16x1x16xf32>
// CHECK: kernel.tile_for_each {{.*}} rows %[[LEFT]] : vector<16x1x16xf32>
// CHECK: kernel.return
func.func @enter(%x: tensor<1x32x7x7xf32>)
    -> tensor<1x2x7x7x16xf32, #trt.dims<["1", "2", "7", "7", "16"], channels = "32">> {
  %y = fused.reformat %x : (tensor<1x32x7x7xf32>)
      -> tensor<1x2x7x7x16xf32, #trt.dims<["1", "2", "7", "7", "16"], channels = "32">>
  func.return %y : tensor<1x2x7x7x16xf32, #trt.dims<["1", "2", "7", "7", "16"], channels = "32">>
}
