// RUN: rt-opt %s --split-input-file -p dce | filecheck %s

// CHECK-LABEL: @unread_layers
// CHECK-NEXT: [[B:%.*]] = trt.unary neg %x
// CHECK-NEXT: func.return [[B]]
func.func @unread_layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %c = trt.unary exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// CHECK-LABEL: @unread_scalars
// CHECK: ^bb0
// CHECK-NEXT: fused.yield
func.func @unread_scalars(%x: tensor<4xi8>) -> tensor<4xi8> {
  %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<4xi8>) -> tensor<4xi8> {
  ^bb0(%p: i8):
    %s = arith.extsi %p : i8 to i32
    fused.yield %p : i8
  }
  func.return %y : tensor<4xi8>
}

// -----

// One result of two is enough to stay; so is an effect.
// CHECK-LABEL: @read_layers
// CHECK: trt.topk
// CHECK: check.expect_close
func.func @read_layers(%x: tensor<4xf32>) -> tensor<2xi64> {
  %v, %i = trt.topk max %x {k = 2 : i64, axis = 0 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  check.expect_close %x, %x : tensor<4xf32>, tensor<4xf32>
  func.return %i : tensor<2xi64>
}
