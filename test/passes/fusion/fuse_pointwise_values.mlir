// RUN: rt-opt %s -p convert-trt-to-fused,fuse-pointwise --run reference | filecheck %s

// CHECK-LABEL: @numbers
// CHECK-COUNT-2: fused.pointwise
// CHECK-NOT: fused.pointwise
func.func @numbers() {
  %x = check.input {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %row = check.input {value = dense<[[10.0, 20.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %t = trt.shuffle %x {first_transpose = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %a = trt.elementwise sum %t, %row : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %s = trt.slice %a {start = #trt.dims<["2", "0"]>, size = #trt.dims<["2", "2"]>, stride = array<i64: -2, 1>} : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %expected = trt.constant {value = dense<[[13.0, 26.0], [11.0, 24.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  check.expect_close %s, %expected : tensor<2x2xf32>, tensor<2x2xf32>
  %start = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %step = trt.constant {value = dense<[10.0, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %r = trt.fill linspace alpha(%start : tensor<f32>) beta(%step : tensor<2xf32>) {output_dims = #trt.dims<["2", "2"]>} : tensor<2x2xf32>
  %u = trt.shuffle %r {first_transpose = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %ramp = trt.constant {value = dense<[[1.0, 11.0], [2.0, 12.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  check.expect_close %u, %ramp : tensor<2x2xf32>, tensor<2x2xf32>
  func.return
}
