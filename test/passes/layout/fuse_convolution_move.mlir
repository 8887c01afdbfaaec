// RUN: rt-opt %s -p 'fuse-convolution-move' --split-input-file | filecheck %s

// CHECK-LABEL: @slices_as_rows
// CHECK: [[C:%.*]] = fused.convolution
// CHECK: [[V:%.*]] = fused.view [[C]]
// CHECK: fused.pointwise [[V]] {{.*}}fused.written_through
func.func @slices_as_rows(%x: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<1x1x6x25x16xf32, #trt.dims<["1", "1", "6", "25", "16"], channels = "16", halo = [1, 0]>> {
  %k = trt.constant {value = dense<0.5> : tensor<16x16x1x1xf32>} : tensor<16x16x1x1xf32>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>, tensor<16x16x1x1xf32>) -> tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %v = fused.view %c : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<6x1x1x25x16xf32, #trt.dims<["6", "1", "1", "25", "16"], channels = "16">>
  %y = fused.pointwise %v {access = [#fused.access<["d2", "d1", "d0", "d3", "d4"]>]} : (tensor<6x1x1x25x16xf32, #trt.dims<["6", "1", "1", "25", "16"], channels = "16">>) -> tensor<1x1x6x25x16xf32, #trt.dims<["1", "1", "6", "25", "16"], channels = "16", halo = [1, 0]>> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  func.return %y : tensor<1x1x6x25x16xf32, #trt.dims<["1", "1", "6", "25", "16"], channels = "16", halo = [1, 0]>>
}

// -----

// Another reader finds the result where the convolution has its own; a doubled one is no move.
// CHECK-LABEL: @read_twice
// CHECK-NOT: fused.written_through
func.func @read_twice(%x: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> (tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">>, tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">>) {
  %k = trt.constant {value = dense<0.5> : tensor<16x16x1x1xf32>} : tensor<16x16x1x1xf32>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>, tensor<16x16x1x1xf32>) -> tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.pointwise %c {access = [#fused.access<["d2", "d1", "d0", "d3", "d4"]>]} : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  %z = fused.pointwise %c {access = [#fused.access<["d2", "d1", "d0", "d3", "d4"]>]} : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    fused.yield %b : f32
  }
  func.return %y, %z : tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">>, tensor<5x1x6x5x16xf32, #trt.dims<["5", "1", "6", "5", "16"], channels = "16">>
}

// -----

// A move of the channels of a block takes vectors apart.
// CHECK-LABEL: @across_channels
// CHECK-NOT: fused.written_through
func.func @across_channels(%x: tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">>) -> tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">> {
  %k = trt.constant {value = dense<0.5> : tensor<16x16x1x1xf32>} : tensor<16x16x1x1xf32>
  %c = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">>, tensor<16x16x1x1xf32>) -> tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.pointwise %c {access = [#fused.access<["d0", "d1", "d2", "d4", "d3"]>]} : (tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">>) -> tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">> {
  ^bb0(%a: f32):
    fused.yield %a : f32
  }
  func.return %y : tensor<6x1x5x16x16xf32, #trt.dims<["6", "1", "5", "16", "16"], channels = "16">>
}
