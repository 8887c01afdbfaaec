// NOTE: rt-update-checks writes the CHECK lines of this file.
// RUN: rt-opt %s %plugins -p move-row-factor-behind-product,dce | filecheck %s

// Two products read the rows: nobody reads them any more.
// CHECK-LABEL: func.func @two_products(
// CHECK-SAME: [[X:%.*]]: tensor<8x64xf32>, [[R:%.*]]: tensor<8x1xf32>) -> (tensor<8x16xf32>, tensor<8x4xf32>) {
// CHECK-NEXT: [[V0:%.*]] = trt.constant {value = #trt.weights<"trt.matrix_multiply.scaled", "5617a7c45d262cf9">} : tensor<64x16xf32>
// CHECK-NEXT: [[V1:%.*]] = trt.matrix_multiply [[X]], [[V0]] : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise prod [[V1]], [[R]] : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: [[V2:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<64x4xf32>} : tensor<64x4xf32>
// CHECK-NEXT: [[V3:%.*]] = trt.matrix_multiply [[X]], [[V2]] : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: [[Z:%.*]] = trt.elementwise prod [[V3]], [[R]] : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: func.return [[Y]], [[Z]] : tensor<8x16xf32>, tensor<8x4xf32>
func.func @two_products(%x: tensor<8x64xf32>, %r: tensor<8x1xf32>) -> (tensor<8x16xf32>, tensor<8x4xf32>) {
  %gamma = trt.constant {value = dense<2.0> : tensor<1x64xf32>} : tensor<1x64xf32>
  %q = trt.constant {value = dense<3.0> : tensor<64x16xf32>} : tensor<64x16xf32>
  %k = trt.constant {value = dense<0.5> : tensor<64x4xf32>} : tensor<64x4xf32>
  %n = trt.elementwise prod %r, %x : (tensor<8x1xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = trt.elementwise prod %n, %gamma : (tensor<8x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  %y = trt.matrix_multiply %g, %q : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %z = trt.matrix_multiply %g, %k : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
  func.return %y, %z : tensor<8x16xf32>, tensor<8x4xf32>
}

// The rows are an output, too.
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-SAME: [[X:%.*]]: tensor<8x64xf32>, [[R:%.*]]: tensor<8x1xf32>) -> (tensor<8x64xf32>, tensor<8x4xf32>) {
// CHECK-NEXT: [[GAMMA:%.*]] = trt.constant {value = dense<2.000000e+00> : tensor<1x64xf32>} : tensor<1x64xf32>
// CHECK-NEXT: [[K:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<64x4xf32>} : tensor<64x4xf32>
// CHECK-NEXT: [[N:%.*]] = trt.elementwise prod [[R]], [[X]] : (tensor<8x1xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
// CHECK-NEXT: [[G:%.*]] = trt.elementwise prod [[N]], [[GAMMA]] : (tensor<8x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
// CHECK-NEXT: [[Z:%.*]] = trt.matrix_multiply [[G]], [[K]] : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: func.return [[G]], [[Z]] : tensor<8x64xf32>, tensor<8x4xf32>
func.func @read_elsewhere(%x: tensor<8x64xf32>, %r: tensor<8x1xf32>) -> (tensor<8x64xf32>, tensor<8x4xf32>) {
  %gamma = trt.constant {value = dense<2.0> : tensor<1x64xf32>} : tensor<1x64xf32>
  %k = trt.constant {value = dense<0.5> : tensor<64x4xf32>} : tensor<64x4xf32>
  %n = trt.elementwise prod %r, %x : (tensor<8x1xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = trt.elementwise prod %n, %gamma : (tensor<8x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  %z = trt.matrix_multiply %g, %k : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
  func.return %g, %z : tensor<8x64xf32>, tensor<8x4xf32>
}
