// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --run=reference
// A product with weights of few bits, and what was fused into it.

// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<3x64xf32>, %c: tensor<5x32xui8>, %s: tensor<5x2xf32>, %z: tensor<1x1xui8>, %b: tensor<5xf32>) {
  // CHECK: %y = fused.packed_matmul %x, %c, %s, %z, %b {bits = 4 : i64, block = 32 : i64, access = [#fused.access<["d1"]>]} : (tensor<3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<1x1xui8>, tensor<5xf32>) -> tensor<3x5xf32> {
  %y = fused.packed_matmul %x, %c, %s, %z, %b {bits = 4 : i64, block = 32 : i64, access = [#fused.access<["d1"]>]} : (tensor<3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<1x1xui8>, tensor<5xf32>) -> tensor<3x5xf32> {
  ^bb0(%sum: f32, %bias: f32):
    %t = arith.addf %sum, %bias : f32
    fused.yield %t : f32
  }
  func.return
}

func.func @meaning() {
  %x = check.input {value = dense<[[1.0, 2.0, 4.0]]> : tensor<1x3xf32>} : tensor<1x3xf32>
  %c = trt.constant {value = dense<[[129, 15], [16, 5]]> : tensor<2x2xui8>} : tensor<2x2xui8>
  %s = trt.constant {value = dense<[[0.5], [0.25]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %z = trt.constant {value = dense<[[8], [5]]> : tensor<2x1xui8>} : tensor<2x1xui8>
  %y = fused.packed_matmul %x, %c, %s, %z {bits = 4 : i64, block = 4 : i64} : (tensor<1x3xf32>, tensor<2x2xui8>, tensor<2x1xf32>, tensor<2x1xui8>) -> tensor<1x2xf32> {
  ^bb0(%sum: f32):
    fused.yield %sum : f32
  }
  %expected = trt.constant {value = dense<[[10.5, -3.25]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  check.expect_close %y, %expected : tensor<1x2xf32>, tensor<1x2xf32>
  func.return
}
