// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,eliminate-concatenation | filecheck %s
// RUN: rt-opt %s --split-input-file -p convert-trt-to-fused,eliminate-concatenation{views=true} | filecheck %s --check-prefix=VIEWS

// CHECK-LABEL: @joined
// CHECK: [[A:%.*]] = fused.pointwise %x
// CHECK: fused.concat [[A]], %x {fused.in_place = [true, false], axis = 1 : i64}
func.func @joined(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %a = trt.unary exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = trt.concatenation %a, %x {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// -----

// CHECK-LABEL: @nested
// CHECK: fused.concat {{%.*}}, %x, {{%.*}} {fused.in_place = [true, false, true], axis = 1 : i64}
// CHECK-NOT: fused.concat
func.func @nested(%x: tensor<2x3xf32>) -> tensor<2x9xf32> {
  %a = trt.unary exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = trt.unary neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %j = trt.concatenation %a, %x {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %y = trt.concatenation %j, %b {axis = 1 : i64} : (tensor<2x6xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
  func.return %y : tensor<2x9xf32>
}

// -----

// Inputs, constants, views and what others read are copied; a join along another axis stays apart.
// CHECK-LABEL: @copied
// CHECK: fused.concat %x, {{%.*}}, {{%.*}}, {{%.*}} {axis = 0 : i64}
// CHECK: fused.concat {{%.*}}, {{%.*}} {fused.in_place = [true, false], axis = 1 : i64}
func.func @copied(%x: tensor<1x4xf32>, %z: tensor<2x2xf32>) -> (tensor<4x8xf32>, tensor<1x4xf32>) {
  %c = trt.constant {value = dense<0.0> : tensor<1x4xf32>} : tensor<1x4xf32>
  %v = trt.shuffle %z {reshape_dims = #trt.dims<["1", "4"]>} : (tensor<2x2xf32>) -> tensor<1x4xf32>
  %a = trt.unary exp %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %j = trt.concatenation %x, %c, %v, %a {axis = 0 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %k = trt.constant {value = dense<0.0> : tensor<4x4xf32>} : tensor<4x4xf32>
  %y = trt.concatenation %j, %k {axis = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  func.return %y, %a : tensor<4x8xf32>, tensor<1x4xf32>
}

// -----

// A view that adds an axis of length 1 does not stand between a producer and the result.
// CHECK-LABEL: @stacked
// CHECK: [[A:%.*]] = fused.pointwise %x {{.*}} -> tensor<2x1x3xf32>
// CHECK: fused.concat [[A]], %z {fused.in_place = [true, false], axis = 1 : i64}
func.func @stacked(%x: tensor<2x3xf32>, %z: tensor<2x1x3xf32>) -> tensor<2x2x3xf32> {
  %e = trt.unary exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %a = trt.shuffle %e {reshape_dims = #trt.dims<["2", "1", "3"]>} : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %y = trt.concatenation %a, %z {axis = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x2x3xf32>
  func.return %y : tensor<2x2x3xf32>
}

// -----

// Where that is asked for, other producers write through such views: the second one's rows lie otherwise, the third
// one has another reader.
// CHECK-LABEL: @through_views
// CHECK: fused.concat {{%.*}}, {{%.*}}, {{%.*}} {axis = 1 : i64}
// VIEWS-LABEL: @through_views
// VIEWS: fused.concat {{%.*}}, {{%.*}}, {{%.*}} {fused.in_place = [true, false, false], axis = 1 : i64}
func.func @through_views(%x: tensor<2x6xf32>, %z: tensor<2x2x3xf32>) -> (tensor<2x3x6xf32>, tensor<2x6xf32>) {
  %e = trt.softmax %x {axis = 1 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %f = trt.softmax %z {axis = 1 : i64} : (tensor<2x2x3xf32>) -> tensor<2x2x3xf32>
  %g = trt.softmax %x {axis = 0 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %a = trt.shuffle %e {reshape_dims = #trt.dims<["2", "1", "6"]>} : (tensor<2x6xf32>) -> tensor<2x1x6xf32>
  %b = trt.shuffle %f {reshape_dims = #trt.dims<["2", "1", "6"]>} : (tensor<2x2x3xf32>) -> tensor<2x1x6xf32>
  %c = trt.shuffle %g {reshape_dims = #trt.dims<["2", "1", "6"]>} : (tensor<2x6xf32>) -> tensor<2x1x6xf32>
  %y = trt.concatenation %a, %b, %c {axis = 1 : i64} : (tensor<2x1x6xf32>, tensor<2x1x6xf32>, tensor<2x1x6xf32>) -> tensor<2x3x6xf32>
  func.return %y, %g : tensor<2x3x6xf32>, tensor<2x6xf32>
}

// -----

// A pointwise op writes through a view that joins its axes, not through one that splits them.
// CHECK-LABEL: @through_joining_views
// CHECK: [[A:%.*]] = fused.view {{.*}} -> tensor<2x6xf32>
// CHECK: [[B:%.*]] = fused.view {{.*}} -> tensor<2x6xf32>
// CHECK: fused.concat [[A]], [[B]] {fused.in_place = [true, false], axis = 1 : i64}
func.func @through_joining_views(%x: tensor<2x2x3xf32>, %z: tensor<12xf32>) -> tensor<2x12xf32> {
  %e = trt.unary exp %x : (tensor<2x2x3xf32>) -> tensor<2x2x3xf32>
  %f = trt.unary exp %z : (tensor<12xf32>) -> tensor<12xf32>
  %a = trt.shuffle %e {reshape_dims = #trt.dims<["2", "6"]>} : (tensor<2x2x3xf32>) -> tensor<2x6xf32>
  %b = trt.shuffle %f {reshape_dims = #trt.dims<["2", "6"]>} : (tensor<12xf32>) -> tensor<2x6xf32>
  %y = trt.concatenation %a, %b {axis = 1 : i64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x12xf32>
  func.return %y : tensor<2x12xf32>
}
