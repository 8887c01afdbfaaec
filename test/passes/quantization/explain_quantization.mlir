// RUN: rt-opt %s --split-input-file -p explain-quantization | filecheck %s
// RUN: rt-opt %s --split-input-file -p explain-quantization --print-quantization-report -o /dev/null 2>&1 | filecheck %s --check-prefix=REPORT

// tensorrt-features.md#10.22: why a pair does not meet a layer of integers.
// CHECK: builtin.module attributes {trt.quantization = {{\[}}["dequantize", "is read in f32 by softmax (trt.softmax)"],
// CHECK-SAME: ["plain weights", "stays f32: its weights are not dequantised from integers"],
// CHECK-SAME: ["input", "rounds what comes from outside"],
// CHECK-SAME: ["quantize", "rounds what softmax (trt.softmax) computes in f32"]]}
// REPORT: dequantize     is read in f32 by softmax (trt.softmax)
// REPORT-NEXT: plain weights  stays f32: its weights are not dequantised from integers
func.func @float_layers(%q: tensor<1x2xi8>, %x: tensor<4xf32>) -> (tensor<1x2xf32>, tensor<4xi8>, tensor<1x2xi8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %w = trt.constant {value = dense<0.5> : tensor<2x2xf32>} : tensor<2x2xf32>
  %d = trt.dequantize %q, %s : (tensor<1x2xi8>, tensor<f32>) -> tensor<1x2xf32> loc("dequantize")
  %y = trt.matrix_multiply %d, %w : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32> loc("plain weights")
  %m = trt.softmax %d {axis = 1 : i64} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("softmax")
  %i = trt.quantize %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8> loc("input")
  %r = trt.quantize %m, %s : (tensor<1x2xf32>, tensor<f32>) -> tensor<1x2xi8> loc("quantize")
  func.return %y, %i, %r : tensor<1x2xf32>, tensor<4xi8>, tensor<1x2xi8>
}

// -----

// CHECK: ["product", "multiplies bytes (ui8 with i8)"],
// CHECK-SAME: ["product + end", "is how product ends"],
// CHECK-SAME: ["behind", "meets other, which has another scale or zero point"],
// CHECK-SAME: ["other", "changes a scale or zero point"]
// REPORT: product + end  is how product ends
func.func @integer_layers(%q: tensor<1x2xui8>) -> tensor<1x2xi8> {
  %one = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %m = trt.constant {value = dense<0.1> : tensor<1x1xf32>} : tensor<1x1xf32>
  %w = trt.constant {value = dense<5> : tensor<2x2xi8>} : tensor<2x2xi8>
  %p = trt.matrix_multiply %q, %w : (tensor<1x2xui8>, tensor<2x2xi8>) -> tensor<1x2xi32> loc("product")
  %f = trt.identity %p : (tensor<1x2xi32>) -> tensor<1x2xf32>
  %x = trt.elementwise prod %f, %m : (tensor<1x2xf32>, tensor<1x1xf32>) -> tensor<1x2xf32>
  %r = trt.quantize %x, %one : (tensor<1x2xf32>, tensor<f32>) -> tensor<1x2xi8> loc(fused["product", "end"])
  %d = trt.dequantize %r, %one : (tensor<1x2xi8>, tensor<f32>) -> tensor<1x2xf32> loc("behind")
  %y = trt.quantize %d, %s : (tensor<1x2xf32>, tensor<f32>) -> tensor<1x2xi8> loc("other")
  func.return %y : tensor<1x2xi8>
}

// -----

// CHECK: builtin.module {
// REPORT: no layer is quantised
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
