// RUN: rt-opt %s -p fuse-block-conversion,dce --split-input-file | filecheck %s

// Slices that were images lie behind each other in the result, with a bias for each channel.
// CHECK-LABEL: @slices
// CHECK-NOT: fused.reformat
// CHECK: [[V:%.*]] = fused.view %b : {{.*}} -> tensor<6x2x5x5x16xf32>
// CHECK: [[C:%.*]] = fused.view %c : (tensor<32xf32>) -> tensor<2x16xf32>
// CHECK: [[R:%.*]] = fused.pointwise [[V]], [[C]] {access = [#fused.access<["3*d0 + d3", "d1", "d4", "d5", "d2"]>, #fused.access<["d1", "d2"]>]} : {{.*}} -> tensor<2x2x16x3x5x5xf32>
// CHECK: arith.addf
// CHECK: fused.view [[R]] : (tensor<2x2x16x3x5x5xf32>) -> tensor<2x32x3x5x5xf32>
func.func @slices(%b: tensor<6x2x5x5x16xf32, #trt.dims<["6", "2", "5", "5", "16"], channels = "32">>, %c: tensor<32xf32>) -> tensor<2x32x3x5x5xf32> {
  %p = fused.reformat %b : (tensor<6x2x5x5x16xf32, #trt.dims<["6", "2", "5", "5", "16"], channels = "32">>) -> tensor<6x32x5x5xf32>
  %y = fused.pointwise %p, %c {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>, #fused.access<["d1"]>]} : (tensor<6x32x5x5xf32>, tensor<32xf32>) -> tensor<2x32x3x5x5xf32> {
  ^bb0(%e: f32, %f: f32):
    %s = arith.addf %e, %f : f32
    fused.yield %s : f32
  }
  func.return %y : tensor<2x32x3x5x5xf32>
}

// -----

// A residual is read by whole channels too; rows of the second operand do not follow the channels.
// CHECK-LABEL: @residual
// CHECK-NOT: fused.reformat
// CHECK: fused.view %r : (tensor<2x16x3x5x5xf32>) -> tensor<2x1x16x3x5x5xf32>
// CHECK: access = [#fused.access<["3*d0 + d3", "d1", "d4", "d5", "d2"]>, #fused.access<["d0", "d1", "d2", "d3", "d4", "d5"]>, #fused.access<["d5"]>]
func.func @residual(%b: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>, %r: tensor<2x16x3x5x5xf32>, %w: tensor<5xf32>) -> tensor<2x16x3x5x5xf32> {
  %p = fused.reformat %b : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<6x16x5x5xf32>
  %y = fused.pointwise %p, %r, %w {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d2", "d3", "d4"]>, #fused.access<["d4"]>]} : (tensor<6x16x5x5xf32>, tensor<2x16x3x5x5xf32>, tensor<5xf32>) -> tensor<2x16x3x5x5xf32> {
  ^bb0(%e: f32, %f: f32, %g: f32):
    %s = arith.addf %e, %f : f32
    %t = arith.mulf %s, %g : f32
    fused.yield %t : f32
  }
  func.return %y : tensor<2x16x3x5x5xf32>
}

// -----

// 24 channels are no whole blocks: blocks and places in them are no two dimensions of the result.
// CHECK-LABEL: @part_of_a_block
// CHECK: fused.reformat
func.func @part_of_a_block(%b: tensor<6x2x5x5x16xf32, #trt.dims<["6", "2", "5", "5", "16"], channels = "24">>) -> tensor<2x24x3x5x5xf32> {
  %p = fused.reformat %b : (tensor<6x2x5x5x16xf32, #trt.dims<["6", "2", "5", "5", "16"], channels = "24">>) -> tensor<6x24x5x5xf32>
  %y = fused.pointwise %p {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>]} : (tensor<6x24x5x5xf32>) -> tensor<2x24x3x5x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %y : tensor<2x24x3x5x5xf32>
}

// -----

// Somebody else reads the plain tensor: it is made anyway, and read along memory.
// CHECK-LABEL: @two_readers
// CHECK: fused.reformat
func.func @two_readers(%b: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> (tensor<6x16x5x5xf32>, tensor<2x16x3x5x5xf32>) {
  %p = fused.reformat %b : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<6x16x5x5xf32>
  %y = fused.pointwise %p {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>]} : (tensor<6x16x5x5xf32>) -> tensor<2x16x3x5x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %p, %y : tensor<6x16x5x5xf32>, tensor<2x16x3x5x5xf32>
}

// -----

// An operand that lies across the result, a part of the channels, and cells around the images are left alone.
// CHECK-LABEL: @others
// CHECK-COUNT-3: fused.reformat
func.func @others(%b: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>, %h: tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16", halo = [1, 1]>>, %t: tensor<5x5xf32>) -> (tensor<2x16x3x5x5xf32>, tensor<2x8x3x5x5xf32>, tensor<2x16x3x5x5xf32>) {
  %p = fused.reformat %b : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<6x16x5x5xf32>
  %q = fused.reformat %b : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16">>) -> tensor<6x16x5x5xf32>
  %r = fused.reformat %h : (tensor<6x1x5x5x16xf32, #trt.dims<["6", "1", "5", "5", "16"], channels = "16", halo = [1, 1]>>) -> tensor<6x16x5x5xf32>
  %x = fused.pointwise %p, %t {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>, #fused.access<["d4", "d3"]>]} : (tensor<6x16x5x5xf32>, tensor<5x5xf32>) -> tensor<2x16x3x5x5xf32> {
  ^bb0(%e: f32, %f: f32):
    %s = arith.addf %e, %f : f32
    fused.yield %s : f32
  }
  %y = fused.pointwise %q {access = [#fused.access<["3*d0 + d2", "d1 + 8", "d3", "d4"]>]} : (tensor<6x16x5x5xf32>) -> tensor<2x8x3x5x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %z = fused.pointwise %r {access = [#fused.access<["3*d0 + d2", "d1", "d3", "d4"]>]} : (tensor<6x16x5x5xf32>) -> tensor<2x16x3x5x5xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  func.return %x, %y, %z : tensor<2x16x3x5x5xf32>, tensor<2x8x3x5x5xf32>, tensor<2x16x3x5x5xf32>
}
