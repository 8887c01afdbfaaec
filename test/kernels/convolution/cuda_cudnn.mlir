// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda features=cudnn}" | filecheck %s
// A convolution by a library: known kernels are transposed into the order of the images, the bias is single precision.
// CHECK-LABEL: func.func @convolution
// CHECK-DAG: %[[X:.*]] = plan.input %x
// CHECK-DAG: %[[TAPS:.*]] = plan.weight {{.*}}taps
// CHECK-DAG: %[[B:.*]] = plan.weight {{.*}}constant
// CHECK-DAG: %[[WORKSPACE:.*]] = plan.buffer {bytes = #plan.expression<"33554432">}
// CHECK: plan.launch %[[X]], %[[TAPS]], %{{.*}}, %[[WORKSPACE]], %[[B]] {kernel = @cudnn_convolution_[[DIGEST:[0-9a-f]+]]
// CHECK-SAME: #plan.expression<"n">, #plan.expression<"8">, #plan.expression<"9">, #plan.expression<"7">
// CHECK: kernel.library_convolution @cudnn_convolution_[[DIGEST]]
// CHECK-SAME: library = "cudnn", proposal = 0 : i64
// CHECK-SAME: biased = true, activation = #kernel<library_activation relu>
// CHECK-SAME: stride = array<i64: 2, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 1>
func.func @convolution(%x: tensor<?x8x9x7xf16, #trt.dims<["n", "8", "9", "7"], order = [0, 2, 3, 1]>>)
    -> tensor<?x16x5x7xf16, #trt.dims<["n", "16", "5", "7"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<0.5> : tensor<16x8x3x3xf16>} : tensor<16x8x3x3xf16>
  %b = trt.constant {value = dense<0.5> : tensor<16xf32>} : tensor<16xf32>
  %y = fused.convolution %x, %w, %b {fused.tactic = "cuda_cudnn:first", stride = array<i64: 2, 1>,
      dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>,
      access = [#fused.access<["d1"]>]}
      : (tensor<?x8x9x7xf16, #trt.dims<["n", "8", "9", "7"], order = [0, 2, 3, 1]>>, tensor<16x8x3x3xf16>, tensor<16xf32>)
      -> tensor<?x16x5x7xf16, #trt.dims<["n", "16", "5", "7"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: f32, %bias: f32):
    %sum = arith.addf %acc, %bias : f32
    %zero = arith.constant 0.0 : f32
    %top = arith.maximumf %sum, %zero : f32
    %n = arith.truncf %top : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<?x16x5x7xf16, #trt.dims<["n", "16", "5", "7"], order = [0, 2, 3, 1]>>
}
