// RUN: rt-opt %s --split-input-file -p insert-scales | filecheck %s

// A tensor is rounded once, behind the layer that makes it, for all products that read it; the last product rounds its
// operands as others do, but what comes behind it stays float32 (tensorrt-features.md#9.24).
// CHECK-LABEL: @main
// CHECK-DAG: [[S:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: [[Q:%.*]] = trt.quantize %x, [[S]] : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xi8>
// CHECK: [[X:%.*]] = trt.dequantize [[Q]], [[S]] : (tensor<1x2x4x4xi8>, tensor<f32>) -> tensor<1x2x4x4xf32>
// CHECK: [[I:%.*]] = trt.constant {value = dense<{{.*}}[-127]{{.*}}[64]{{.*}}> : tensor<2x2x1x1xi8>}
// CHECK: [[T:%.*]] = trt.constant {value = dense<[0.0078740{{.*}}, 1.000000e+00]> : tensor<2xf32>}
// CHECK: [[W:%.*]] = trt.dequantize [[I]], [[T]] {axis = 0 : i64}
// CHECK: [[C:%.*]] = trt.convolution [[X]], [[W]]
// CHECK: [[R:%.*]] = trt.activation relu [[C]]
// CHECK: [[H:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<f32>}
// CHECK: [[D:%.*]] = trt.dequantize {{%.*}}, [[H]]
// CHECK: trt.convolution [[D]]
// CHECK: trt.convolution [[D]]
// CHECK-NOT: trt.quantize
// CHECK: func.return
builtin.module attributes {trt.ranges = {"x" = 127.0 : f64, "c" = 3.0 : f64, "r" = 63.5 : f64}} {
  func.func @main(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
    %w = trt.constant {value = dense<[[[[-1.0]], [[0.5]]], [[[0.0]], [[0.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
    %c = trt.convolution %x, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
    %r = trt.activation relu %c : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    %a = trt.convolution %r, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
    %b = trt.convolution %r, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
    %s = trt.activation sigmoid %b : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    func.return %a, %s : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
  }
}

// -----

// Of an addition the operand is rounded that the later product, which takes the addition over, does not compute itself;
// an average between quantised layers reads bytes where a product does so too. Names need not be words.
// CHECK-LABEL: @main
// CHECK: [[Q:%.*]] = trt.quantize %x
// CHECK: [[X:%.*]] = trt.dequantize [[Q]]
// CHECK: %a = trt.convolution [[X]]
// CHECK: [[A:%.*]] = trt.quantize %a
// CHECK: [[D:%.*]] = trt.dequantize [[A]]
// CHECK: %b = trt.convolution [[X]]
// CHECK: %s = trt.elementwise sum [[D]], %b
// CHECK: [[R:%.*]] = trt.dequantize
// CHECK: %p = trt.pooling average [[R]]
// CHECK: [[P:%.*]] = trt.dequantize
// CHECK: trt.convolution [[P]]
builtin.module attributes {trt.ranges = {"in/put" = 1.0 : f64, "a" = 3.0 : f64, "b" = 3.0 : f64, "s" = 5.0 : f64, "p" = 5.0 : f64, "y" = 1.0 : f64, "z" = 1.0 : f64}} {
  func.func @main(%x: tensor<1x1x4x4xf32> {trt.name = "in/put"}) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x4xf32>) {
    %w = trt.constant {value = dense<1.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
    %a = trt.convolution %x, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
    %b = trt.convolution %x, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
    %s = trt.elementwise sum %a, %b : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
    %r = trt.activation relu %s : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
    %p = trt.pooling average %r {window = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
    %y = trt.convolution %p, %w : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
    %z = trt.convolution %r, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
    func.return %y, %z : tensor<1x1x3x3xf32>, tensor<1x1x4x4xf32>
  }
}

// -----

// What is asked to stay float stays so; scales of a product's weights lie along its columns.
// CHECK-LABEL: @main
// CHECK: %a = trt.matrix_multiply %x, %w
// CHECK: trt.quantize %a
// CHECK: trt.dequantize {{.*}} {axis = 1 : i64} : (tensor<2x3xi8>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: %b = trt.matrix_multiply
// CHECK: %c = trt.matrix_multiply %b
builtin.module attributes {trt.ranges = {x = 1.0 : f64, a = 1.0 : f64, b = 1.0 : f64}, trt.layer_precisions = {"last" = "fp32"}} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %w = trt.constant {value = dense<1.0> : tensor<2x2xf32>} : tensor<2x2xf32>
    %v = trt.constant {value = dense<1.0> : tensor<2x3xf32>} : tensor<2x3xf32>
    %u = trt.constant {value = dense<1.0> : tensor<3x2xf32>} : tensor<3x2xf32>
    %a = trt.matrix_multiply %x, %w {trt.precision = "fp32"} : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    %b = trt.matrix_multiply %a, %v : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %c = trt.matrix_multiply %b, %u : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc("last")
    func.return %c : tensor<4x2xf32>
  }
}

// -----

// Where the channels of a tensor differ, each has its own scale, and the weights that it meets are multiplied with it.
// CHECK-LABEL: @main
// CHECK: %c = trt.convolution
// CHECK-DAG: [[S:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK-DAG: [[C:%.*]] = trt.constant {value = dense<[1.000000e+00, 2.500000e-01]> : tensor<2xf32>}
// CHECK: [[Q:%.*]] = trt.quantize %c, [[C]] {axis = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<2xf32>) -> tensor<1x2x4x4xi8>
// CHECK: [[D:%.*]] = trt.dequantize [[Q]], [[S]] : (tensor<1x2x4x4xi8>, tensor<f32>)
// CHECK: trt.constant {value = dense<{{.*}}[127]{{.*}}[32]{{.*}}> : tensor<1x2x1x1xi8>}
// CHECK: trt.convolution [[D]]
builtin.module attributes {trt.ranges = {"x" = 127.0 : f64, "c" = 127.0 : f64, "y" = 1.0 : f64}, trt.channels = {"c" = [dense<[-127.0, -31.75]> : tensor<2xf32>, dense<[127.0, 0.0]> : tensor<2xf32>, dense<0.0> : tensor<2xf32>]}} {
  func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xf32> {
    %w = trt.constant {value = dense<1.0> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
    %v = trt.constant {value = dense<1.0> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
    %c = trt.convolution %x, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
    %y = trt.convolution %c, %v : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
    func.return %y : tensor<1x1x4x4xf32>
  }
}

// -----

// Numbers that lie on one side of zero use all bytes, where no product pads.
// CHECK-LABEL: @main
// CHECK: [[S:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: [[Z:%.*]] = trt.constant {value = dense<-128> : tensor<i8>}
// CHECK: [[Q:%.*]] = trt.quantize %x, [[S]], [[Z]]
// CHECK: [[D:%.*]] = trt.dequantize [[Q]], [[S]], [[Z]]
// CHECK: trt.convolution [[D]]
builtin.module attributes {trt.ranges = {"x" = 255.0 : f64, "y" = 1.0 : f64}, trt.channels = {"x" = [dense<0.0> : tensor<2xf32>, dense<[255.0, 200.0]> : tensor<2xf32>, dense<0.0> : tensor<2xf32>]}} {
  func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xf32> {
    %v = trt.constant {value = dense<1.0> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
    %y = trt.convolution %x, %v : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
    func.return %y : tensor<1x1x4x4xf32>
  }
}
