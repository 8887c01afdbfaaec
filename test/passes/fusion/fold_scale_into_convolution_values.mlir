// RUN: rt-opt %s -p fold-scale-into-convolution,dce --run reference | filecheck %s

// Channels of a grouped deconvolution lie group by group.
// CHECK-LABEL: @grouped_deconvolution
// CHECK-NOT: trt.scale
func.func @grouped_deconvolution() {
  %x = check.input {value = dense<[[[[1.0]], [[10.0]]]]> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %w = trt.constant {value = dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %scale = trt.constant {value = dense<[1.0, 10.0, 100.0, 1000.0]> : tensor<4xf32>} : tensor<4xf32>
  %c = trt.deconvolution %x, %w {num_groups = 2 : i64} : (tensor<1x2x1x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x4x1x1xf32>
  %y = trt.scale %c scale(%scale : tensor<4xf32>) : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32>
  %expected = trt.constant {value = dense<[[[[1.0]], [[20.0]], [[3000.0]], [[40000.0]]]]> : tensor<1x4x1x1xf32>} : tensor<1x4x1x1xf32>
  check.expect_close %y, %expected : tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>
  func.return
}
