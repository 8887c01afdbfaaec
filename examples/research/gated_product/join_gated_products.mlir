// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p join-gated-products | filecheck %s

// The sigmoid may stand on either side.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME: [[X:%.*]]: tensor<8x64xf32>) -> tensor<8x24xf32> {
// CHECK-NEXT: [[U:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x24xf32>} : tensor<64x24xf32>
// CHECK-NEXT: [[V:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x24xf32>} : tensor<64x24xf32>
// CHECK-NEXT: [[V0:%.*]] = trt.constant {value = #trt.weights<"trt.matrix_multiply.joined", "a59b9d08f455ba31">} : tensor<64x48xf32>
// CHECK-NEXT: [[V1:%.*]] = trt.matrix_multiply [[X]], [[V0]] : (tensor<8x64xf32>, tensor<64x48xf32>) -> tensor<8x48xf32>
// CHECK-NEXT: [[V2:%.*]] = trt.slice [[V1]] {start = #trt.dims<["0", "0"]>, size = #trt.dims<["8", "24"]>, stride = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[V3:%.*]] = trt.slice [[V1]] {start = #trt.dims<["0", "24"]>, size = #trt.dims<["8", "24"]>, stride = array<i64: 1, 1>} : (tensor<8x48xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[V4:%.*]] = trt.activation sigmoid [[V2]] : (tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[V5:%.*]] = trt.elementwise prod [[V2]], [[V4]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[V5]], [[V3]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
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

// Another product reads another tensor.
// CHECK-LABEL: func.func @two_inputs(
// CHECK-SAME: [[X:%.*]]: tensor<8x64xf32>, [[Z:%.*]]: tensor<8x64xf32>) -> tensor<8x24xf32> {
// CHECK-NEXT: [[U:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x24xf32>} : tensor<64x24xf32>
// CHECK-NEXT: [[A:%.*]] = trt.matrix_multiply [[X]], [[U]] : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[S:%.*]] = trt.activation sigmoid [[A]] : (tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[H:%.*]] = trt.elementwise prod [[A]], [[S]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[B:%.*]] = trt.matrix_multiply [[Z]], [[U]] : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[H]], [[B]] : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<8x24xf32>
func.func @two_inputs(%x: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x24xf32> {
  %u = trt.constant {value = dense<0.5> : tensor<64x24xf32>} : tensor<64x24xf32>
  %a = trt.matrix_multiply %x, %u : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
  %s = trt.activation sigmoid %a : (tensor<8x24xf32>) -> tensor<8x24xf32>
  %h = trt.elementwise prod %a, %s : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  %b = trt.matrix_multiply %z, %u : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
  %y = trt.elementwise prod %h, %b : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
  func.return %y : tensor<8x24xf32>
}
