// RUN: rt-opt %s | rt-opt | filecheck %s
// Matrix products and convolutions with their epilogues.

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<2x4x8xf16>, %b: tensor<1x3x8xf16>, %c: tensor<3xf32>) {
  // CHECK: %y = fused.matmul %a, %b, %c {access = [#fused.access<["d2"]>], transpose_rhs = true} : (tensor<2x4x8xf16>, tensor<1x3x8xf16>, tensor<3xf32>) -> tensor<2x4x3xf32> {
  %y = fused.matmul %a, %b, %c {access = [#fused.access<["d2"]>], transpose_rhs = true}
    : (tensor<2x4x8xf16>, tensor<1x3x8xf16>, tensor<3xf32>) -> tensor<2x4x3xf32> {
  ^bb0(%acc: f32, %bias: f32):
    %0 = arith.addf %acc, %bias : f32
    fused.yield %0 : f32
  }
  func.return
}

// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<?x4x9x9xf32, #trt.dims<["n", "4", "9", "9"]>>, %k: tensor<6x2x3x3xf32>) {
  // CHECK: %y = fused.convolution %x, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 2 : i64}
  %y = fused.convolution %x, %k {stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, groups = 2 : i64}
    : (tensor<?x4x9x9xf32, #trt.dims<["n", "4", "9", "9"]>>, tensor<6x2x3x3xf32>) -> tensor<?x6x5x5xf32, #trt.dims<["n", "6", "5", "5"]>> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// CHECK-LABEL: func.func @bytes
func.func @bytes(%x: tensor<1x4x9x9xui8>, %k: tensor<6x4x3x3xi8>) {
  // CHECK: %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 128 : i64}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 128 : i64}
    : (tensor<1x4x9x9xui8>, tensor<6x4x3x3xi8>) -> tensor<1x6x9x9xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return
}

// CHECK-LABEL: func.func @pooled
func.func @pooled(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // CHECK: %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, pooling = #fused.pooling<average [2, 3]>}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, pooling = #fused.pooling<average [2, 3]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x4x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}
