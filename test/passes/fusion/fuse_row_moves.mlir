// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,fuse-row-moves,verify-dominance | filecheck %s

// A roll by one along two axes, as two concatenations of two slices each: a table of the six rows of an image.
// CHECK-LABEL: @rolled
// CHECK: [[I:%.*]] = trt.constant {value = dense<[5, 3, 4, 2, 0, 1]> : tensor<6xi32>} : tensor<6xi32>
// CHECK: [[V:%.*]] = fused.view %x : (tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x6x16xf16, #trt.dims<["n", "6", "16"]>>
// CHECK: [[G:%.*]] = fused.gather [[V]], [[I]] {axis = 1 : i64}
// CHECK: fused.view [[G]]
// CHECK-NOT: fused.concat
// CHECK: func.return
func.func @rolled(%x: tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>> {
  %a = fused.pointwise %x {access = [#fused.access<["d0", "d1 + 1", "d2", "d3"]>]} : (tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x1x3x16xf16, #trt.dims<["n", "1", "3", "16"]>> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  %b = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x1x3x16xf16, #trt.dims<["n", "1", "3", "16"]>> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  %r = fused.concat %a, %b {axis = 1 : i64} : (tensor<?x1x3x16xf16, #trt.dims<["n", "1", "3", "16"]>>, tensor<?x1x3x16xf16, #trt.dims<["n", "1", "3", "16"]>>) -> tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>
  %c = fused.pointwise %r {access = [#fused.access<["d0", "d1", "d2 + 2", "d3"]>]} : (tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x2x1x16xf16, #trt.dims<["n", "2", "1", "16"]>> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  %d = fused.pointwise %r {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>) -> tensor<?x2x2x16xf16, #trt.dims<["n", "2", "2", "16"]>> {
  ^bb0(%e: f16):
    fused.yield %e : f16
  }
  %y = fused.concat %c, %d {axis = 2 : i64} : (tensor<?x2x1x16xf16, #trt.dims<["n", "2", "1", "16"]>>, tensor<?x2x2x16xf16, #trt.dims<["n", "2", "2", "16"]>>) -> tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>
  func.return %y : tensor<?x2x3x16xf16, #trt.dims<["n", "2", "3", "16"]>>
}

// -----

// Pixels of a 2 x 2 place become channels: slices that are joined along the last axis, in another order than memory's.
// CHECK-LABEL: @pixels_to_channels
// CHECK: trt.constant {value = dense<[0, 2, 1, 3]> : tensor<4xi32>}
// CHECK: fused.gather
// CHECK-NOT: fused.concat
// CHECK: func.return
func.func @pixels_to_channels(%x: tensor<5x2x2x16xf32>) -> tensor<5x1x1x64xf32> {
  %a = trt.slice %x {start = #trt.dims<["0", "0", "0", "0"]>, size = #trt.dims<["5", "1", "1", "16"]>, stride = array<i64: 1, 2, 2, 1>} : (tensor<5x2x2x16xf32>) -> tensor<5x1x1x16xf32>
  %b = trt.slice %x {start = #trt.dims<["0", "1", "0", "0"]>, size = #trt.dims<["5", "1", "1", "16"]>, stride = array<i64: 1, 2, 2, 1>} : (tensor<5x2x2x16xf32>) -> tensor<5x1x1x16xf32>
  %c = trt.slice %x {start = #trt.dims<["0", "0", "1", "0"]>, size = #trt.dims<["5", "1", "1", "16"]>, stride = array<i64: 1, 2, 2, 1>} : (tensor<5x2x2x16xf32>) -> tensor<5x1x1x16xf32>
  %d = trt.slice %x {start = #trt.dims<["0", "1", "1", "0"]>, size = #trt.dims<["5", "1", "1", "16"]>, stride = array<i64: 1, 2, 2, 1>} : (tensor<5x2x2x16xf32>) -> tensor<5x1x1x16xf32>
  %y = trt.concatenation %a, %b, %c, %d {axis = 3 : i64} : (tensor<5x1x1x16xf32>, tensor<5x1x1x16xf32>, tensor<5x1x1x16xf32>, tensor<5x1x1x16xf32>) -> tensor<5x1x1x64xf32>
  func.return %y : tensor<5x1x1x64xf32>
}

// -----

// Two parts in their own order are the tensor itself.
// CHECK-LABEL: @in_order
// CHECK-NEXT: [[V:%.*]] = fused.view %x : (tensor<6x16xf32>) -> tensor<6x16xf32>
// CHECK-NEXT: func.return [[V]]
func.func @in_order(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %a = trt.slice %x {start = #trt.dims<["0", "0"]>, size = #trt.dims<["4", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<4x16xf32>
  %b = trt.slice %x {start = #trt.dims<["4", "0"]>, size = #trt.dims<["2", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<2x16xf32>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<4x16xf32>, tensor<2x16xf32>) -> tensor<6x16xf32>
  func.return %y : tensor<6x16xf32>
}

// -----

// Short rows, two tensors, and a part that somebody else reads as well.
// CHECK-LABEL: @short_rows
// CHECK: fused.concat
func.func @short_rows(%x: tensor<6x15xf32>) -> tensor<6x15xf32> {
  %a = trt.slice %x {start = #trt.dims<["2", "0"]>, size = #trt.dims<["4", "15"]>, stride = array<i64: 1, 1>} : (tensor<6x15xf32>) -> tensor<4x15xf32>
  %b = trt.slice %x {start = #trt.dims<["0", "0"]>, size = #trt.dims<["2", "15"]>, stride = array<i64: 1, 1>} : (tensor<6x15xf32>) -> tensor<2x15xf32>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<4x15xf32>, tensor<2x15xf32>) -> tensor<6x15xf32>
  func.return %y : tensor<6x15xf32>
}

// CHECK-LABEL: @two_tensors
// CHECK: fused.concat
func.func @two_tensors(%x: tensor<6x16xf32>, %z: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %a = trt.slice %x {start = #trt.dims<["2", "0"]>, size = #trt.dims<["4", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<4x16xf32>
  %b = trt.slice %z {start = #trt.dims<["0", "0"]>, size = #trt.dims<["2", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<2x16xf32>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<4x16xf32>, tensor<2x16xf32>) -> tensor<6x16xf32>
  func.return %y : tensor<6x16xf32>
}

// CHECK-LABEL: @read_by_others
// CHECK: [[B:%.*]] = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]}
// CHECK: fused.concat {{%.*}}, [[B]]
func.func @read_by_others(%x: tensor<6x16xf32>) -> (tensor<6x16xf32>, tensor<2x16xf32>) {
  %a = trt.slice %x {start = #trt.dims<["2", "0"]>, size = #trt.dims<["4", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<4x16xf32>
  %b = trt.slice %x {start = #trt.dims<["0", "0"]>, size = #trt.dims<["2", "16"]>, stride = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<2x16xf32>
  %y = trt.concatenation %a, %b {axis = 0 : i64} : (tensor<4x16xf32>, tensor<2x16xf32>) -> tensor<6x16xf32>
  func.return %y, %b : tensor<6x16xf32>, tensor<2x16xf32>
}
