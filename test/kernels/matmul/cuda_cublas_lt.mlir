// RUN: rt-opt %s --split-input-file -p "convert-fused-to-kernel{target=cuda features=cublas_lt}" | filecheck %s
// A call of a library is a kernel without a body, and a launch with workspace; the sizes are arguments of the launch.
// CHECK-LABEL: func.func @product
// CHECK: %[[X:.*]] = plan.input %x
// CHECK: %[[W:.*]] = plan.input %w
// CHECK: %[[B:.*]] = plan.input %b
// CHECK: %[[Y:.*]] = plan.buffer {bytes = #plan.expression<"24576">}
// CHECK: %[[WORKSPACE:.*]] = plan.buffer {bytes = #plan.expression<"33554432">}
// CHECK: plan.launch %[[X]], %[[W]], %[[Y]], %[[WORKSPACE]], %[[B]] {kernel = @cublas_lt_product_[[DIGEST:[0-9a-f]+]]
// CHECK-SAME: #plan.expression<"128">, #plan.expression<"96">, #plan.expression<"64">
// CHECK: kernel.library_product @cublas_lt_product_[[DIGEST]]
// CHECK-SAME: library = "cublas_lt", proposal = 1 : i64
// CHECK-SAME: biased = true, activation = #kernel<library_activation relu>
func.func @product(%x: tensor<128x64xf16>, %w: tensor<64x96xf16>, %b: tensor<96xf16>) -> tensor<128x96xf16> {
  %y = fused.matmul %x, %w, %b {fused.tactic = "cuda_cublas_lt:second", access = [#fused.access<["d1"]>]}
      : (tensor<128x64xf16>, tensor<64x96xf16>, tensor<96xf16>) -> tensor<128x96xf16> {
  ^bb0(%acc: f32, %bias: f16):
    %wide = arith.extf %bias : f16 to f32
    %sum = arith.addf %acc, %wide : f32
    %zero = arith.constant 0.0 : f32
    %top = arith.maximumf %sum, %zero : f32
    %n = arith.truncf %top : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<128x96xf16>
}

// -----

// The kernels of this project stay candidates where the library may be used.
// CHECK-LABEL: func.func @own_kernel
// CHECK-NOT: kernel.library_product
// CHECK: kernel.func @matmul_
func.func @own_kernel(%x: tensor<128x64xf16>, %w: tensor<64x96xf16>, %b: tensor<96xf16>) -> tensor<128x96xf16> {
  %y = fused.matmul %x, %w, %b {fused.tactic = "cuda_tiles:64x64", access = [#fused.access<["d1"]>]}
      : (tensor<128x64xf16>, tensor<64x96xf16>, tensor<96xf16>) -> tensor<128x96xf16> {
  ^bb0(%acc: f32, %bias: f16):
    %wide = arith.extf %bias : f16 to f32
    %sum = arith.addf %acc, %wide : f32
    %zero = arith.constant 0.0 : f32
    %top = arith.maximumf %sum, %zero : f32
    %n = arith.truncf %top : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<128x96xf16>
}
