// RUN: rt-opt %s -p split-gated-products | filecheck %s

// A gated unit with a bias for each column of the product: two products, and a reader of both as they lie.
// CHECK-LABEL: func.func @gated
// CHECK-NOT:   tensor<80x256xf32>
// CHECK:       %[[A:.*]] = fused.matmul %{{.*}}, %{{.*}}, %{{.*}} : (tensor<80x24xf32>, tensor<24x128xf32>, tensor<128xf32>) -> tensor<80x128xf32>
// CHECK:       %[[B:.*]] = fused.matmul %{{.*}}, %{{.*}}, %{{.*}} : (tensor<80x24xf32>, tensor<24x128xf32>, tensor<128xf32>) -> tensor<80x128xf32>
// CHECK:       fused.pointwise %[[A]], %[[B]]
func.func @gated(%x: tensor<80x24xf32>) -> tensor<80x128xf32> {
  %w = trt.constant {value = dense<1.0> : tensor<24x256xf32>} : tensor<24x256xf32>
  %b = trt.constant {value = dense<2.0> : tensor<256xf32>} : tensor<256xf32>
  %p = fused.matmul %x, %w, %b {access = [#fused.access<["d1"]>]} :
    (tensor<80x24xf32>, tensor<24x256xf32>, tensor<256xf32>) -> tensor<80x256xf32> {
  ^bb0(%acc: f32, %one: f32):
    %n = arith.addf %acc, %one : f32
    fused.yield %n : f32
  }
  %y = fused.pointwise %p, %p {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1 + 128"]>]} :
    (tensor<80x256xf32>, tensor<80x256xf32>) -> tensor<80x128xf32> {
  ^bb0(%value: f32, %gate: f32):
    %g = math.tanh %gate : f32
    %n = arith.mulf %value, %g : f32
    fused.yield %n : f32
  }
  func.return %y : tensor<80x128xf32>
}

// Few rows take as long as their matrix, and a second reader needs all columns: both stay.
// CHECK-LABEL: func.func @few_rows
// CHECK:       fused.matmul %{{.*}} -> tensor<4x256xf32>
// CHECK-LABEL: func.func @two_readers
// CHECK:       fused.matmul %{{.*}} -> tensor<80x256xf32>
func.func @few_rows(%x: tensor<4x24xf32>) -> tensor<4x128xf32> {
  %w = trt.constant {value = dense<1.0> : tensor<24x256xf32>} : tensor<24x256xf32>
  %p = fused.matmul %x, %w : (tensor<4x24xf32>, tensor<24x256xf32>) -> tensor<4x256xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.pointwise %p, %p {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1 + 128"]>]} :
    (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<4x128xf32> {
  ^bb0(%value: f32, %gate: f32):
    %n = arith.mulf %value, %gate : f32
    fused.yield %n : f32
  }
  func.return %y : tensor<4x128xf32>
}
func.func @two_readers(%x: tensor<80x24xf32>) -> (tensor<80x128xf32>, tensor<80x256xf32>) {
  %w = trt.constant {value = dense<1.0> : tensor<24x256xf32>} : tensor<24x256xf32>
  %p = fused.matmul %x, %w : (tensor<80x24xf32>, tensor<24x256xf32>) -> tensor<80x256xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.pointwise %p, %p {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0", "d1 + 128"]>]} :
    (tensor<80x256xf32>, tensor<80x256xf32>) -> tensor<80x128xf32> {
  ^bb0(%value: f32, %gate: f32):
    %n = arith.mulf %value, %gate : f32
    fused.yield %n : f32
  }
  func.return %y, %p : tensor<80x128xf32>, tensor<80x256xf32>
}
