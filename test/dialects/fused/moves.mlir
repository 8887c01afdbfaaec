// RUN: rt-opt %s | rt-opt | filecheck %s
// Ops that move elements.

// CHECK-LABEL: func.func @pad
func.func @pad(%x: tensor<2x3xf32>, %f: tensor<f32>) {
  // CHECK: %a = fused.pad %x, %f {pre = #trt.dims<["0", "-1"]>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x4xf32>
  %a = fused.pad %x, %f {pre = #trt.dims<["0", "-1"]>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x4xf32>
  // CHECK: %b = fused.pad %x {pre = #trt.dims<["0", "2"]>, stride = #trt.dims<["1", "2"]>, mode = #fused<pad_mode wrap>} : (tensor<2x3xf32>) -> tensor<2x9xf32>
  %b = fused.pad %x {pre = #trt.dims<["0", "2"]>, stride = #trt.dims<["1", "2"]>, mode = #fused<pad_mode wrap>} : (tensor<2x3xf32>) -> tensor<2x9xf32>
  func.return
}

// CHECK-LABEL: func.func @gather_and_scatter
func.func @gather_and_scatter(%x: tensor<2x5xf32>, %i: tensor<2x3xi64>) {
  // CHECK: %a = fused.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x2x3xf32>
  %a = fused.gather %x, %i {axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x2x3xf32>
  // CHECK: %b = fused.gather %x, %i {mode = #fused<gather_mode element>, axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  %b = fused.gather %x, %i {mode = #fused<gather_mode element>, axis = 1 : i64} : (tensor<2x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  // CHECK: %c = fused.scatter %x, %i, %b {axis = 1 : i64, reduction = #fused<scatter_reduction add>} : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  %c = fused.scatter %x, %i, %b {axis = 1 : i64, reduction = #fused<scatter_reduction add>} : (tensor<2x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x5xf32>
  func.return
}

// CHECK-LABEL: func.func @concat_and_view
func.func @concat_and_view(%x: tensor<2x?xf32, #trt.dims<["2", "n"]>>) {
  // CHECK: %a = fused.concat %x, %x {fused.in_place = [true, false], axis = 0 : i64} : (tensor<2x?xf32, #trt.dims<["2", "n"]>>, tensor<2x?xf32, #trt.dims<["2", "n"]>>) -> tensor<4x?xf32, #trt.dims<["4", "n"]>>
  %a = fused.concat %x, %x {axis = 0 : i64, fused.in_place = [true, false]} : (tensor<2x?xf32, #trt.dims<["2", "n"]>>, tensor<2x?xf32, #trt.dims<["2", "n"]>>) -> tensor<4x?xf32, #trt.dims<["4", "n"]>>
  // CHECK: %b = fused.view %a : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<?xf32, #trt.dims<["4*n"]>>
  %b = fused.view %a : (tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<?xf32, #trt.dims<["4*n"]>>
  func.return
}

// CHECK-LABEL: func.func @interleave
func.func @interleave(%x: tensor<1x4x3xf32>, %y: tensor<1x4x2xf32>) {
  // CHECK: %z = fused.interleave %x, %y {fused.in_place = [false, true], factors = array<i64: 2>} : (tensor<1x4x3xf32>, tensor<1x4x2xf32>) -> tensor<1x4x5xf32>
  %z = fused.interleave %x, %y {factors = array<i64: 2>, fused.in_place = [false, true]} : (tensor<1x4x3xf32>, tensor<1x4x2xf32>) -> tensor<1x4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @resize
func.func @resize(%x: tensor<1x3x4x4xf32>) {
  // CHECK: %y = fused.resize linear %x {coordinate = #trt<coordinate half_pixel>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x8xf32>
  %y = fused.resize linear %x {coordinate = #trt<coordinate half_pixel>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x8xf32>
  func.return
}
