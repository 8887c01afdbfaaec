// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s -p fold-constants{scales=true} | filecheck %s --check-prefix=FOLDED
// Weights of few bits, and products with them.

// CHECK-LABEL: func.func @blocks
func.func @blocks(%c: tensor<?x32xui8, #trt.dims<["n", "32"]>>, %s: tensor<?x2xf32, #trt.dims<["n", "2"]>>) {
  // CHECK: %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 40 : i64} : (tensor<?x32xui8, #trt.dims<["n", "32"]>>, tensor<?x2xf32, #trt.dims<["n", "2"]>>) -> tensor<?x40xf32, #trt.dims<["n", "40"]>>
  %w = trt.dequantize_blocks %c, %s {bits = 4 : i64, block = 32 : i64, depth = 40 : i64} : (tensor<?x32xui8, #trt.dims<["n", "32"]>>, tensor<?x2xf32, #trt.dims<["n", "2"]>>) -> tensor<?x40xf32, #trt.dims<["n", "40"]>>
  func.return
}

// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<2x3x64xf32>, %c: tensor<5x32xui8>, %s: tensor<5x2xf32>, %z: tensor<5x2xui8>) {
  // CHECK: %y = trt.packed_matrix_multiply %x, %c, %s, %z {bits = 4 : i64, block = 32 : i64} : (tensor<2x3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x2xui8>) -> tensor<2x3x5xf32>
  %y = trt.packed_matrix_multiply %x, %c, %s, %z {bits = 4 : i64, block = 32 : i64} : (tensor<2x3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x2xui8>) -> tensor<2x3x5xf32>
  func.return
}

// The lowest bits of a byte come first; 8 stands for 0, and 5 where the zero point says so.
// FOLDED-LABEL: func.func @numbers
// FOLDED: trt.constant {value = dense<{{\[\[}}-3.500000e+00, 0.000000e+00, 3.500000e+00], [-1.250000e+00, -1.000000e+00, 0.000000e+00]]> : tensor<2x3xf32>}
func.func @numbers() -> tensor<2x3xf32> {
  %c = trt.constant {value = dense<[[129, 15], [16, 5]]> : tensor<2x2xui8>} : tensor<2x2xui8>
  %s = trt.constant {value = dense<[[0.5], [0.25]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %z = trt.constant {value = dense<[[8], [5]]> : tensor<2x1xui8>} : tensor<2x1xui8>
  %w = trt.dequantize_blocks %c, %s, %z {bits = 4 : i64, block = 4 : i64, depth = 3 : i64} : (tensor<2x2xui8>, tensor<2x1xf32>, tensor<2x1xui8>) -> tensor<2x3xf32>
  func.return %w : tensor<2x3xf32>
}
