// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p 'join-gated-products{least=100000}' | filecheck %s

// Both products take 24576 multiplications.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME: [[X:%.*]]: tensor<8x64xf32>) -> tensor<8x24xf32> {
// CHECK-NEXT: [[U:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x24xf32>} : tensor<64x24xf32>
// CHECK-NEXT: [[V:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x24xf32>} : tensor<64x24xf32>
// CHECK-NEXT: [[A:%.*]] = trt.matrix_multiply [[X]], [[U]] : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[S:%.*]] = trt.activation sigmoid [[A]] : (tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[H:%.*]] = trt.elementwise prod [[S]], [[A]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[B:%.*]] = trt.matrix_multiply [[X]], [[V]] : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[H]], [[B]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<8x24xf32>
func.func @gated(%x: tensor<8x64xf32>) -> tensor<8x24xf32> {
  %u = trt.constant {value = dense<0.5> : tensor<64x24xf32>} : tensor<64x24xf32>
  %v = trt.constant {value = dense<0.5> : tensor<64x24xf32>} : tensor<64x24xf32>
  %a = trt.matrix_multiply %x, %u : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
  %s = trt.activation sigmoid %a : (tensor<8x24xf32>) -> tensor<8x24xf32>
  %h = trt.elementwise prod %s, %a : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  %b = trt.matrix_multiply %x, %v : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
  %y = trt.elementwise prod %h, %b : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  func.return %y : tensor<8x24xf32>
}
