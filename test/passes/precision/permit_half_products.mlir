// RUN: rt-opt %s --split-input-file -p 'fold-constants,dce,convert-trt-to-fused,permit-half-products{features=fp16fml}' --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'fold-constants,dce,convert-trt-to-fused,permit-half-products{features=dotprod}' | filecheck %s --check-prefix=NONE
// RUN: rt-opt %s --split-input-file -p 'fold-constants,dce,convert-trt-to-fused,permit-half-products{vector_bits=256 features=fp16fml}' | filecheck %s --check-prefix=NONE

// What is folded is in the weight store; 0.75 is a half.
// CHECK-LABEL: @exact
// CHECK: fused.matmul %x, [[W:%.*]] {{.*}}may_round = true{{.*}} : (tensor<2x1024xf32>, tensor<1024x16xf32>)
// NONE-LABEL: @exact
// NONE-NOT: may_round
// NONE: func.return
func.func @exact(%x: tensor<2x1024xf32>) -> tensor<2x16xf32> {
  %a = trt.constant {value = dense<0.5> : tensor<1024x16xf32>} : tensor<1024x16xf32>
  %b = trt.constant {value = dense<0.25> : tensor<1024x16xf32>} : tensor<1024x16xf32>
  %w = trt.elementwise sum %a, %b : (tensor<1024x16xf32>, tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %y = trt.matrix_multiply %x, %w : (tensor<2x1024xf32>, tensor<1024x16xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}

// -----

// 0.1 is none: weights of a matrix product become the nearest ones, as a constant of its own.
// CHECK-LABEL: @rounded
// CHECK: [[H:%.*]] = trt.constant {value = #trt.weights<"{{.*}}.halves", {{.*}}
// CHECK: fused.matmul %x, [[H]] {{.*}}may_round = true
// NONE-LABEL: @rounded
// NONE-NOT: may_round
// NONE: func.return
func.func @rounded(%x: tensor<2x1024xf32>) -> tensor<2x16xf32> {
  %a = trt.constant {value = dense<0.1> : tensor<1024x16xf32>} : tensor<1024x16xf32>
  %b = trt.constant {value = dense<0.2> : tensor<1024x16xf32>} : tensor<1024x16xf32>
  %w = trt.elementwise sum %a, %b : (tensor<1024x16xf32>, tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %y = trt.matrix_multiply %x, %w : (tensor<2x1024xf32>, tensor<1024x16xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}

// -----

// Half precision would lose them, or a user asks for float32: all numbers are kept.
// CHECK-LABEL: @kept
// CHECK-NOT: may_round
// CHECK: func.return
// NONE-LABEL: @kept
// NONE-NOT: may_round
// NONE: func.return
module attributes {trt.layer_precisions = {"asked" = "fp32"}} {
  func.func @kept(%x: tensor<2x1024xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>) {
    %a = trt.constant {value = dense<4.0e+05> : tensor<1024x16xf32>} : tensor<1024x16xf32>
    %b = trt.constant {value = dense<0.5> : tensor<1024x16xf32>} : tensor<1024x16xf32>
    %v = trt.elementwise sum %a, %a : (tensor<1024x16xf32>, tensor<1024x16xf32>) -> tensor<1024x16xf32>
    %w = trt.elementwise sum %b, %b : (tensor<1024x16xf32>, tensor<1024x16xf32>) -> tensor<1024x16xf32>
    %y = trt.matrix_multiply %x, %v : (tensor<2x1024xf32>, tensor<1024x16xf32>) -> tensor<2x16xf32>
    %z = trt.matrix_multiply %x, %w : (tensor<2x1024xf32>, tensor<1024x16xf32>) -> tensor<2x16xf32> loc("asked")
    func.return %y, %z : tensor<2x16xf32>, tensor<2x16xf32>
  }
}

// -----

// With so many rows each number of the weights is read once for many products: float32 is as fast.
// CHECK-LABEL: @rows
// CHECK-NOT: may_round
// CHECK: func.return
// NONE-LABEL: @rows
// NONE-NOT: may_round
// NONE: func.return
func.func @rows(%x: tensor<33x1024xf32>, %y: tensor<3x11x1024xf32>) -> (tensor<33x16xf32>, tensor<3x11x16xf32>) {
  %a = trt.constant {value = dense<0.5> : tensor<1024x16xf32>} : tensor<1024x16xf32>
  %b = trt.constant {value = dense<0.5> : tensor<1x1024x16xf32>} : tensor<1x1024x16xf32>
  %v = trt.elementwise sum %a, %a : (tensor<1024x16xf32>, tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %w = trt.elementwise sum %b, %b : (tensor<1x1024x16xf32>, tensor<1x1024x16xf32>) -> tensor<1x1024x16xf32>
  %p = trt.matrix_multiply %x, %v : (tensor<33x1024xf32>, tensor<1024x16xf32>) -> tensor<33x16xf32>
  %q = trt.matrix_multiply %y, %w : (tensor<3x11x1024xf32>, tensor<1x1024x16xf32>) -> tensor<3x11x16xf32>
  func.return %p, %q : tensor<33x16xf32>, tensor<3x11x16xf32>
}
