// RUN: rt-opt %s --split-input-file -p 'apply-pdl{file=%S/scaled_bias.pdl}' --print-debuginfo | filecheck %s

// CHECK-LABEL: @swapped
// CHECK: [[S:%.*]] = trt.elementwise sum %c, %x {{.*}} loc(fused["add", "relu"])
// CHECK-NEXT: trt.activation softplus [[S]] {{.*}} loc(fused["add", "relu"])
func.func @swapped(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = trt.constant {value = dense<1.0> : tensor<2x1xf32>} : tensor<2x1xf32> loc("c")
  %a = trt.elementwise sum %x, %c : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32> loc("add")
  %y = trt.activation relu %a : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("relu")
  func.return %y : tensor<2x2xf32>
}

// -----

// Not with another type, not without a constant, not with another reader.
// CHECK-LABEL: @stays
// CHECK-NOT: softplus
func.func @stays(%x: tensor<2x2xf32>, %z: tensor<3xf32>) -> (tensor<2x2xf32>, tensor<3xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %c = trt.constant {value = dense<1.0> : tensor<2x1xf32>} : tensor<2x1xf32>
  %d = trt.constant {value = dense<1.0> : tensor<3xf32>} : tensor<3xf32>
  %a = trt.elementwise sum %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %p = trt.activation relu %a : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = trt.elementwise sum %z, %d : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %q = trt.activation relu %b : (tensor<3xf32>) -> tensor<3xf32>
  %e = trt.elementwise sum %x, %c : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %r = trt.activation relu %e : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %p, %q, %r, %e : tensor<2x2xf32>, tensor<3xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
