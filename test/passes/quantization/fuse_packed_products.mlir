// RUN: rt-opt %s --split-input-file -p 'fuse-packed-products{min-elements=4},dce' --print-debuginfo | filecheck %s

// Blocks of a transposed matrix, behind a reshape for a batch.
// CHECK-LABEL: @blocks
// CHECK-DAG: [[C:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<3x4xui8>}
// CHECK-DAG: [[S:%.*]] = trt.constant {value = dense<{{.*}}> : tensor<3x1xf32>}
// CHECK-DAG: [[Z:%.*]] = trt.constant {value = dense<8> : tensor<1x1xui8>}
// CHECK-NOT: trt.dequantize_blocks
// CHECK: %y = trt.packed_matrix_multiply %x, [[C]], [[S]], [[Z]] {bits = 4 : i64, block = 8 : i64} : (tensor<2x4x6xf32>, tensor<3x4xui8>, tensor<3x1xf32>, tensor<1x1xui8>) -> tensor<2x4x3xf32> loc("product")
func.func @blocks(%x: tensor<2x4x6xf32>) -> tensor<2x4x3xf32> {
  %c = trt.constant {value = dense<[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]> : tensor<3x4xui8>} : tensor<3x4xui8>
  %s = trt.constant {value = dense<[[0.5], [1.0], [2.0]]> : tensor<3x1xf32>} : tensor<3x1xf32>
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 8 : i64, depth = 6 : i64} : (tensor<3x4xui8>, tensor<3x1xf32>) -> tensor<3x6xf32>
  %r = trt.shuffle %w {reshape_dims = #trt.dims<["1", "3", "6"]>} : (tensor<3x6xf32>) -> tensor<1x3x6xf32>
  %y = trt.matrix_multiply %x, %r {rhs_op = #trt<matrix_operation transpose>} : (tensor<2x4x6xf32>, tensor<1x3x6xf32>) -> tensor<2x4x3xf32> loc("product")
  func.return %y : tensor<2x4x3xf32>
}

// -----

// One scale a column; numbers from -8 to 7 become codes of 4 bits, 8 for 0.
// CHECK-LABEL: @columns
// CHECK-DAG: [[C:%.*]] = trt.constant {value = dense<{{\[\[}}128, 134, 136, 136], [249, 131, 136, 136]]> : tensor<2x4xui8>}
// CHECK-DAG: [[S:%.*]] = trt.constant {value = dense<{{\[\[}}5.000000e-01], [1.000000e+00]]> : tensor<2x1xf32>}
// CHECK-DAG: [[Z:%.*]] = trt.constant {value = dense<8> : tensor<1x1xui8>}
// CHECK: trt.packed_matrix_multiply %x, [[C]], [[S]], [[Z]] {bits = 4 : i64, block = 8 : i64} : (tensor<3x3xf32>
func.func @columns(%x: tensor<3x3xf32>) -> tensor<3x2xf32> {
  %q = trt.constant {value = dense<[[-8, 1], [0, 7], [-2, -5]]> : tensor<3x2xi8>} : tensor<3x2xi8>
  %s = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %w = trt.dequantize %q, %s {axis = 1 : i64} : (tensor<3x2xi8>, tensor<2xf32>) -> tensor<3x2xf32>
  %y = trt.matrix_multiply %x, %w : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Others take 8 bits; their zero points move with them.
// CHECK-LABEL: @bytes
// CHECK-DAG: trt.constant {value = dense<{{\[\[}}28, 130, 127, 128, 128, 128, 128, 128], [135, 228, 123, 128, 128, 128, 128, 128]]> : tensor<2x8xui8>}
// CHECK-DAG: trt.constant {value = dense<131> : tensor<2x1xui8>}
// CHECK: trt.packed_matrix_multiply {{.*}} {bits = 8 : i64, block = 8 : i64}
func.func @bytes(%x: tensor<3x3xf32>) -> tensor<3x2xf32> {
  %q = trt.constant {value = dense<[[-100, 2, -1], [7, 100, -5]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = trt.constant {value = dense<[0.5, 1.0]> : tensor<2xf32>} : tensor<2xf32>
  %z = trt.constant {value = dense<3> : tensor<2xi8>} : tensor<2xi8>
  %w = trt.dequantize %q, %s, %z {axis = 0 : i64} : (tensor<2x3xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<2x3xf32>
  %y = trt.matrix_multiply %x, %w {rhs_op = #trt<matrix_operation transpose>} : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Scales along the sum of a channel, codes that a run computes, and a vector stay as they are.
// CHECK-LABEL: @others
// CHECK-NOT: trt.packed_matrix_multiply
// CHECK: func.return
func.func @others(%x: tensor<3x3xf32>, %c: tensor<3x4xui8>) -> (tensor<3x2xf32>, tensor<3x3xf32>, tensor<3xf32>) {
  %q = trt.constant {value = dense<[[-100, 2], [7, 100], [0, 3]]> : tensor<3x2xi8>} : tensor<3x2xi8>
  %s = trt.constant {value = dense<[0.5, 1.0, 2.0]> : tensor<3xf32>} : tensor<3xf32>
  %w = trt.dequantize %q, %s {axis = 0 : i64} : (tensor<3x2xi8>, tensor<3xf32>) -> tensor<3x2xf32>
  %y = trt.matrix_multiply %x, %w : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %t = trt.constant {value = dense<1.0> : tensor<3x1xf32>} : tensor<3x1xf32>
  %v = trt.dequantize_blocks %c, %t {bits = 4 : i64, block = 8 : i64, depth = 3 : i64} : (tensor<3x4xui8>, tensor<3x1xf32>) -> tensor<3x3xf32>
  %u = trt.matrix_multiply %x, %v : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %p = trt.constant {value = dense<[1, 2, 3]> : tensor<3xi8>} : tensor<3xi8>
  %o = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %p, %o : (tensor<3xi8>, tensor<f32>) -> tensor<3xf32>
  %m = trt.matrix_multiply %x, %d {rhs_op = #trt<matrix_operation vector>} : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %y, %u, %m : tensor<3x2xf32>, tensor<3x3xf32>, tensor<3xf32>
}
