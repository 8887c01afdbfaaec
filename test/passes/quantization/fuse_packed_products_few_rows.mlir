// RUN: rt-opt %s -p 'fuse-packed-products{min-elements=4 most-rows=2},fold-constants{scales=true packed=true},dce' | filecheck %s

// Products of more rows read numbers that each run makes of the codes, which stay packed.
// CHECK-LABEL: @main
// CHECK: [[W:%.*]] = trt.dequantize_blocks
// CHECK: %y = trt.packed_matrix_multiply %x
// CHECK: %z = trt.matrix_multiply %more, [[W]]
func.func @main(%x: tensor<2x6xf32>, %more: tensor<3x6xf32>) -> (tensor<2x3xf32>, tensor<3x3xf32>) {
  %c = trt.constant {value = dense<[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]> : tensor<3x4xui8>} : tensor<3x4xui8>
  %s = trt.constant {value = dense<[[0.5], [1.0], [2.0]]> : tensor<3x1xf32>} : tensor<3x1xf32>
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 8 : i64, depth = 6 : i64} : (tensor<3x4xui8>, tensor<3x1xf32>) -> tensor<3x6xf32>
  %y = trt.matrix_multiply %x, %w {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x6xf32>, tensor<3x6xf32>) -> tensor<2x3xf32>
  %z = trt.matrix_multiply %more, %w {rhs_op = #trt<matrix_operation transpose>} : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<3x3xf32>
  func.return %y, %z : tensor<2x3xf32>, tensor<3x3xf32>
}
