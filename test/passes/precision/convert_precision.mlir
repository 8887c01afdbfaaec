// RUN: rt-opt %s --split-input-file -p convert-precision,dce --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p 'convert-precision{to=bf16},dce' | filecheck %s --check-prefix=BF16
// RUN: rt-opt %s --split-input-file -p 'convert-precision{to=f32},canonicalize,dce' | filecheck %s --check-prefix=F32

// CHECK-LABEL: @network
// CHECK-SAME: -> (tensor<2x3xf32>, tensor<2x3xi64>)
// CHECK: [[W:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<3x3xf16>} : tensor<3x3xf16>
// CHECK: [[H:%.*]] = trt.identity %x : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK: [[P:%.*]] = trt.matrix_multiply [[H]], [[W]] : {{.*}} -> tensor<2x3xf16> loc("product")
// CHECK: [[S:%.*]] = trt.softmax [[P]] {{.*}} -> tensor<2x3xf16>
// CHECK: [[V:%.*]], [[I:%.*]] = trt.topk max [[S]] {{.*}} -> (tensor<2x3xf16>, tensor<2x3xi64>)
// CHECK: [[F:%.*]] = trt.identity [[V]] : (tensor<2x3xf16>) -> tensor<2x3xf32>
// CHECK: func.return [[F]], [[I]]
// BF16-LABEL: @network
// BF16: trt.identity %x : (tensor<2x3xf32>) -> tensor<2x3xbf16>
func.func @network(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %w = trt.constant {value = dense<0.5> : tensor<3x3xf32>} : tensor<3x3xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32> loc("product")
  %s = trt.softmax %p {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %v, %i = trt.topk max %s {k = 3 : i64, axis = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}

// -----

// Scales of quantization keep their precision, and so does what they make, until a layer reads it.
// CHECK-LABEL: @quantization
// CHECK: [[S:%.*]] = trt.constant {{.*}} : tensor<f32>
// CHECK: [[D:%.*]] = trt.dequantize %q, [[S]] : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
// CHECK: [[H:%.*]] = trt.identity [[D]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: [[R:%.*]] = trt.activation relu [[H]]
// CHECK: trt.quantize [[R]], [[S]] : (tensor<4xf16>, tensor<f32>) -> tensor<4xi8>
func.func @quantization(%q: tensor<4xi8>) -> tensor<4xi8> {
  %s = trt.constant {value = dense<0.1> : tensor<f32>} : tensor<f32>
  %d = trt.dequantize %q, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.activation relu %d : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.quantize %r, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}

// -----

// What is not float32 stays; an input that is returned stays too.
// CHECK-LABEL: @other_types
// CHECK-NEXT: trt.elementwise sum %i, %i
// CHECK-NEXT: trt.unary exp %d
// CHECK-NEXT: func.return %x
func.func @other_types(%x: tensor<4xf32>, %i: tensor<4xi32>, %d: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf64>) {
  %a = trt.elementwise sum %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %b = trt.unary exp %d : (tensor<4xf64>) -> tensor<4xf64>
  func.return %x, %a, %b : tensor<4xf32>, tensor<4xi32>, tensor<4xf64>
}

// -----

// Biases, and constants of pointwise layers that half precision would round, stay float32.
// CHECK-LABEL: @fine_constants
// CHECK-DAG: [[B:%.*]] = trt.constant {{.*}} : tensor<2xf32>
// CHECK-DAG: [[K:%.*]] = trt.constant {{.*}} : tensor<2x1x1x1xf16>
// CHECK-DAG: [[S:%.*]] = trt.constant {{.*}} : tensor<1x1x1x1xf32>
// CHECK: [[C:%.*]] = trt.convolution {{%.*}}, [[K]], [[B]] : (tensor<1x1x2x2xf16>, tensor<2x1x1x1xf16>, tensor<2xf32>) -> tensor<1x2x2x2xf16>
// CHECK: [[W:%.*]] = trt.identity [[C]] : {{.*}} -> tensor<1x2x2x2xf32>
// CHECK: [[P:%.*]] = trt.elementwise prod [[W]], [[S]] : {{.*}} -> tensor<1x2x2x2xf32>
// CHECK: [[H:%.*]] = trt.identity [[P]] : {{.*}} -> tensor<1x2x2x2xf16>
// CHECK: trt.pooling max [[H]]
func.func @fine_constants(%x: tensor<1x1x2x2xf32>) -> tensor<1x2x1x1xf32> {
  %k = trt.constant {value = dense<0.1> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %b = trt.constant {value = dense<0.1> : tensor<2xf32>} : tensor<2xf32>
  %s = trt.constant {value = dense<1.7> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %c = trt.convolution %x, %k, %b : (tensor<1x1x2x2xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %p = trt.elementwise prod %c, %s : (tensor<1x2x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x2x2xf32>
  %y = trt.pooling max %p {window = array<i64: 2, 2>} : (tensor<1x2x2x2xf32>) -> tensor<1x2x1x1xf32>
  func.return %y : tensor<1x2x1x1xf32>
}

// -----

// The statistics of a normalization are float32, and are applied in float32: a product with the reciprocal of a small
// deviation is in range where the reciprocal is not. The result is stored in half precision.
// CHECK-LABEL: @statistics
// CHECK: [[C:%.*]] = trt.elementwise sub {{.*}} -> tensor<2x8xf16>
// CHECK: [[W:%.*]] = trt.identity [[C]] : (tensor<2x8xf16>) -> tensor<2x8xf32>
// CHECK: [[Q:%.*]] = trt.elementwise prod [[W]], [[W]] : {{.*}} -> tensor<2x8xf32>
// CHECK: [[V:%.*]] = trt.reduce avg [[Q]] {{.*}} -> tensor<2x1xf32>
// CHECK: [[D:%.*]] = trt.unary sqrt [[V]] : {{.*}} -> tensor<2x1xf32>
// CHECK: [[R:%.*]] = trt.unary recip [[D]] : {{.*}} -> tensor<2x1xf32>
// CHECK: [[Y:%.*]] = trt.elementwise prod [[W]], [[R]] : {{.*}} -> tensor<2x8xf32>
// CHECK: [[H:%.*]] = trt.identity [[Y]] : {{.*}} -> tensor<2x8xf16>
// CHECK: trt.activation relu [[H]] : (tensor<2x8xf16>) -> tensor<2x8xf16>
func.func @statistics(%x: tensor<2x8xf32>, %m: tensor<2x1xf32>) -> tensor<2x8xf32> {
  %c = trt.elementwise sub %x, %m : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %q = trt.elementwise prod %c, %c : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %v = trt.reduce avg %q {axes = array<i64: 1>} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %d = trt.unary sqrt %v : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %r = trt.unary recip %d : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %p = trt.elementwise prod %c, %r : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %y = trt.activation relu %p : (tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// -----

// What keeps a divisor from zero must not become zero itself.
// CHECK-LABEL: @epsilon_of_a_divisor
// CHECK: [[M:%.*]] = trt.reduce max {{.*}} -> tensor<2x1xf16>
// CHECK: [[W:%.*]] = trt.identity [[M]] : {{.*}} -> tensor<2x1xf32>
// CHECK: [[S:%.*]] = trt.elementwise sum [[W]], {{.*}} -> tensor<2x1xf32>
// CHECK: trt.elementwise div {{%.*}}, [[S]] : {{.*}} -> tensor<2x8xf32>
// CHECK: [[B:%.*]] = trt.activation clip {{.*}} -> tensor<2x1xf32>
// CHECK: trt.elementwise div {{%.*}}, [[B]] : {{.*}} -> tensor<2x8xf32>
func.func @epsilon_of_a_divisor(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %e = trt.constant {value = dense<1.0e-12> : tensor<1x1xf32>} : tensor<1x1xf32>
  %m = trt.reduce max %x {axes = array<i64: 1>} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %s = trt.elementwise sum %m, %e : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %q = trt.elementwise div %x, %s : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %b = trt.activation clip %m {alpha = 1.0e-12 : f64, beta = 1.0 : f64} : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %y = trt.elementwise div %q, %b : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// -----

// A logarithm keeps its whole signal, back to the activation and to the product of two results.
// CHECK-LABEL: @spectrogram
// CHECK: [[A:%.*]] = trt.activation relu {{.*}} -> tensor<4x4xf32>
// CHECK: [[M:%.*]] = trt.matrix_multiply [[A]], {{.*}} -> tensor<4x4xf32>
// CHECK: [[S:%.*]] = trt.elementwise prod [[M]], [[M]] : {{.*}} -> tensor<4x4xf32>
// CHECK: [[L:%.*]] = trt.unary log [[S]] : {{.*}} -> tensor<4x4xf32>
// CHECK: [[H:%.*]] = trt.identity [[L]] : {{.*}} -> tensor<4x4xf16>
// CHECK: trt.matrix_multiply [[H]], {{.*}} -> tensor<4x4xf16>
func.func @spectrogram(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = trt.constant {value = dense<0.5> : tensor<4x4xf32>} : tensor<4x4xf32>
  %a = trt.activation relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = trt.matrix_multiply %a, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = trt.elementwise prod %m, %m : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = trt.unary log %s : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = trt.matrix_multiply %l, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// -----

// Weights that overflow, or that are tiny all together, are multiplied in float32.
// CHECK-LABEL: @coarse_weights
// CHECK: trt.matrix_multiply {{.*}} -> tensor<4x4xf32>
// CHECK: trt.matrix_multiply {{.*}} -> tensor<4x4xf32>
// CHECK: trt.matrix_multiply {{.*}} -> tensor<4x4xf16>
func.func @coarse_weights(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %large = trt.constant {value = dense<1.0e6> : tensor<4x4xf32>} : tensor<4x4xf32>
  %tiny = trt.constant {value = dense<1.1e-7> : tensor<4x4xf32>} : tensor<4x4xf32>
  %w = trt.constant {value = dense<0.1> : tensor<4x4xf32>} : tensor<4x4xf32>
  %a = trt.matrix_multiply %x, %large : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = trt.matrix_multiply %a, %tiny : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = trt.matrix_multiply %b, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// -----

// For a machine that computes half precision slowly: a network in float16 becomes one in float32.
// F32-LABEL: @half_precision_network
// F32-SAME: -> tensor<4xf16>
// F32-NEXT: [[C:%.*]] = trt.constant {value = dense<5.000000e-01> : tensor<1xf32>}
// F32-NEXT: [[X:%.*]] = trt.identity %x : (tensor<4xf16>) -> tensor<4xf32>
// F32-NEXT: [[P:%.*]] = trt.elementwise prod [[X]], [[C]] : {{.*}} -> tensor<4xf32>
// F32-NEXT: [[E:%.*]] = trt.unary exp [[P]] : (tensor<4xf32>) -> tensor<4xf32>
// F32-NEXT: [[Y:%.*]] = trt.identity [[E]] : (tensor<4xf32>) -> tensor<4xf16>
// F32-NEXT: func.return [[Y]]
func.func @half_precision_network(%x: tensor<4xf16>) -> tensor<4xf16> {
  %half = trt.constant {value = dense<0.5> : tensor<1xf16>} : tensor<1xf16>
  %p = trt.elementwise prod %x, %half : (tensor<4xf16>, tensor<1xf16>) -> tensor<4xf16>
  %w = trt.identity %p : (tensor<4xf16>) -> tensor<4xf32>
  %e = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.identity %e : (tensor<4xf32>) -> tensor<4xf16>
  func.return %y : tensor<4xf16>
}

// -----

// Sums of int8 products would overflow; half precision begins behind what scales them, and not before a rounding.
// CHECK-LABEL: @bytes
// CHECK: [[C:%.*]] = trt.matrix_multiply %x, %w : (tensor<2x3xui8>, tensor<3x3xi8>) -> tensor<2x3xi32>
// CHECK: [[F:%.*]] = trt.identity [[C]] : (tensor<2x3xi32>) -> tensor<2x3xf32>
// CHECK: [[M:%.*]] = trt.elementwise prod [[F]], {{.*}} -> tensor<2x3xf32>
// CHECK: [[H:%.*]] = trt.identity [[M]] : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK: trt.quantize [[M]], {{.*}} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
// CHECK: trt.softmax [[H]]
func.func @bytes(%x: tensor<2x3xui8>, %w: tensor<3x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xf32>) {
  %s = trt.constant {value = dense<0.1> : tensor<1x1xf32>} : tensor<1x1xf32>
  %one = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %c = trt.matrix_multiply %x, %w : (tensor<2x3xui8>, tensor<3x3xi8>) -> tensor<2x3xi32>
  %f = trt.identity %c : (tensor<2x3xi32>) -> tensor<2x3xf32>
  %m = trt.elementwise prod %f, %s : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %q = trt.quantize %m, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi8>
  %y = trt.softmax %m {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %q, %y : tensor<2x3xi8>, tensor<2x3xf32>
}

// -----

// A layer that is asked for float32 keeps it, and one that is asked for half precision takes it, whatever they compute.
// CHECK-LABEL: @asked
// CHECK: [[W:%.*]] = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("wide")
// CHECK: [[H:%.*]] = trt.identity [[W]]
// CHECK: [[E:%.*]] = trt.unary exp [[H]] : (tensor<4xf16>) -> tensor<4xf16> loc("narrow")
// CHECK: trt.unary exp {{.*}} -> tensor<4xf32> loc("free")
module attributes {trt.layer_precisions = {"wide" = "fp32", "narrow" = "fp16"}} {
  func.func @asked(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("wide")
    %n = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32> loc("narrow")
    %f = trt.unary exp %n : (tensor<4xf32>) -> tensor<4xf32> loc("free")
    func.return %f : tensor<4xf32>
  }
}

// -----

// A loop reads what it read, out of the converted layers in front of it, which run once.
// F32-LABEL: @loop
// F32: [[E:%.*]] = trt.unary exp {{.*}} -> tensor<4xf32>
// F32-NEXT: [[H:%.*]] = trt.identity [[E]] : (tensor<4xf32>) -> tensor<4xf16>
// F32-NEXT: scf.for {{.*}} iter_args({{%.*}} = [[H]]) -> (tensor<4xf16>)
// F32-NEXT: trt.elementwise sum {{%.*}}, [[H]]
// F32-NOT: trt.unary
func.func @loop(%x: tensor<4xf16>, %first: index, %last: index, %step: index) -> tensor<4xf16> {
  %e = trt.unary exp %x : (tensor<4xf16>) -> tensor<4xf16>
  %y = scf.for %i = %first to %last step %step iter_args(%sum = %e) -> (tensor<4xf16>) {
    %more = trt.elementwise sum %sum, %e : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
    scf.yield %more : tensor<4xf16>
  }
  func.return %y : tensor<4xf16>
}

// -----

// Boxes whose overlap is compared keep float32, and so does the threshold.
// CHECK-LABEL: @boxes
// CHECK: [[H:%.*]] = trt.activation relu {{.*}} -> tensor<1x2x4xf16>
// CHECK: [[B:%.*]] = trt.identity [[H]] : (tensor<1x2x4xf16>) -> tensor<1x2x4xf32>
// CHECK: trt.suppress [[B]], %a, %limit, %t : (tensor<1x2x4xf32>, tensor<1x2xi1>, tensor<i64>, tensor<f32>)
func.func @boxes(%x: tensor<1x2x4xf32>, %a: tensor<1x2xi1>, %limit: tensor<i64>, %t: tensor<f32>) -> tensor<1x2xi1> {
  %b = trt.activation relu %x : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %k = trt.suppress %b, %a, %limit, %t
      : (tensor<1x2x4xf32>, tensor<1x2xi1>, tensor<i64>, tensor<f32>) -> tensor<1x2xi1>
  func.return %k : tensor<1x2xi1>
}

// -----

// What is only moved on its way to a product, which rounds it, is rounded before it is moved: sums of int8 products.
// CHECK-LABEL: @moved
// CHECK: [[S:%.*]] = trt.elementwise prod {{.*}} -> tensor<2x3x8xf32>
// CHECK-NEXT: [[H:%.*]] = trt.identity [[S]] : (tensor<2x3x8xf32>) -> tensor<2x3x8xf16>
// CHECK-NEXT: [[T:%.*]] = trt.shuffle [[H]] {{.*}} -> tensor<2x4x3x2xf16>
// CHECK: trt.matrix_multiply [[T]], {{.*}} -> tensor<2x4x3x3xf16>
func.func @moved(%x: tensor<2x3x8xi32>, %s: tensor<1x1x1xf32>, %k: tensor<2x4x3x2xf32>) -> tensor<2x4x3x3xf32> {
  %f = trt.identity %x : (tensor<2x3x8xi32>) -> tensor<2x3x8xf32>
  %q = trt.elementwise prod %f, %s : (tensor<2x3x8xf32>, tensor<1x1x1xf32>) -> tensor<2x3x8xf32>
  %t = trt.shuffle %q {reshape_dims = #trt.dims<["2", "3", "4", "2"]>, second_transpose = array<i64: 0, 2, 1, 3>}
      : (tensor<2x3x8xf32>) -> tensor<2x4x3x2xf32>
  %y = trt.matrix_multiply %t, %k {rhs_op = #trt<matrix_operation transpose>}
      : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x3xf32>
  func.return %y : tensor<2x4x3x3xf32>
}

// -----

// Another reader takes the numbers as they are.
// CHECK-LABEL: @moved_for_a_sum
// CHECK: trt.shuffle {{.*}} -> tensor<4x2xf32>
func.func @moved_for_a_sum(%x: tensor<2x4xi32>, %k: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<4x2xf32>) {
  %f = trt.identity %x : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %t = trt.shuffle %f {first_transpose = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %y = trt.matrix_multiply %t, %k : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %z = trt.elementwise sum %t, %t : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %y, %z : tensor<4x4xf32>, tensor<4x2xf32>
}

// -----

// The bias of a recurrent layer is added to a float32 sum, as that of a product is.
// CHECK-LABEL: @recurrent
// CHECK: trt.rnn gru {{.*}} weights {{.*}} : tensor<6x3xf16> bias %b : tensor<6xf32> : tensor<5x1x3xf16>, tensor<6x2xf16>
// BF16-LABEL: @recurrent
// BF16: trt.rnn gru {{.*}} weights {{.*}} : tensor<6x3xbf16> bias %b : tensor<6xf32> : tensor<5x1x3xbf16>
func.func @recurrent(%x: tensor<5x1x3xf32>, %w: tensor<6x3xf32>, %r: tensor<6x2xf32>, %b: tensor<6xf32>) -> tensor<5x1x2xf32> {
  %y, %h = trt.rnn gru %x, %r weights %w : tensor<6x3xf32> bias %b : tensor<6xf32> : tensor<5x1x3xf32>, tensor<6x2xf32> -> tensor<5x1x2xf32>, tensor<1x2xf32>
  func.return %y : tensor<5x1x2xf32>
}

// -----

// A network that casts a tensor to half precision and back rounds it; what it computes in half precision it does not.
// F32-LABEL: @rounds
// F32: [[H:%.*]] = trt.identity %x {trt.rounds} : (tensor<4xf32>) -> tensor<4xf16>
// F32: trt.identity [[H]] : (tensor<4xf16>) -> tensor<4xf32>
// F32-NOT: xf16
// F32: trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
func.func @rounds(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %h = trt.identity %x : (tensor<4xf32>) -> tensor<4xf16>
  %y = trt.identity %h : (tensor<4xf16>) -> tensor<4xf32>
  %r = trt.activation relu %h : (tensor<4xf16>) -> tensor<4xf16>
  %z = trt.identity %r : (tensor<4xf16>) -> tensor<4xf32>
  func.return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// The last bits of float32 that these quotients of polynomials are for are rounded away.
// CHECK-LABEL: @quotients
// CHECK: trt.activation sigmoid {{.*}}xf16>
// CHECK: trt.activation tanh {{.*}}xf16>
// F32-LABEL: @quotients
// F32: trt.activation rational_sigmoid
func.func @quotients(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation rational_sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = trt.activation rational_tanh %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// What only chooses among halves of inputs and constants does so with the halves; what combines them is float32.
// F32-LABEL: @moves
// F32: [[G:%.*]] = trt.gather %t, %i : {{.*}} -> tensor<2x4xf16>
// F32: [[W:%.*]] = trt.identity [[G]] : (tensor<2x4xf16>) -> tensor<2x4xf32>
// F32: trt.concatenation %x, [[G]] {{.*}} -> tensor<5x4xf16>
// F32: [[E:%.*]] = trt.unary exp [[W]] : (tensor<2x4xf32>) -> tensor<2x4xf32>
// F32: [[U:%.*]] = trt.identity [[E]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// F32: trt.scatter %x, %j, [[U]] {{.*}} -> tensor<3x4xf16>
// F32: [[X:%.*]] = trt.identity %x : (tensor<3x4xf16>) -> tensor<3x4xf32>
// F32: trt.scatter [[X]], %j, [[E]] {{.*}}reduction{{.*}} -> tensor<3x4xf32>
// F32: trt.concatenation [[X]], [[E]] {{.*}} -> tensor<5x4xf32>
func.func @moves(%x: tensor<3x4xf16>, %i: tensor<2xi64>, %j: tensor<2x1xi64>) -> (tensor<5x4xf16>, tensor<3x4xf16>, tensor<3x4xf16>, tensor<5x4xf16>) {
  %t = trt.constant {value = dense<0.5> : tensor<9x4xf16>} : tensor<9x4xf16>
  %g = trt.gather %t, %i {axis = 0 : i64} : (tensor<9x4xf16>, tensor<2xi64>) -> tensor<2x4xf16>
  %c = trt.concatenation %x, %g {axis = 0 : i64} : (tensor<3x4xf16>, tensor<2x4xf16>) -> tensor<5x4xf16>
  %e = trt.unary exp %g : (tensor<2x4xf16>) -> tensor<2x4xf16>
  %s = trt.scatter %x, %j, %e {mode = #trt<scatter_mode nd>} : (tensor<3x4xf16>, tensor<2x1xi64>, tensor<2x4xf16>) -> tensor<3x4xf16>
  %r = trt.scatter %x, %j, %e {mode = #trt<scatter_mode nd>, reduction = #trt<scatter_reduction add>} : (tensor<3x4xf16>, tensor<2x1xi64>, tensor<2x4xf16>) -> tensor<3x4xf16>
  %d = trt.concatenation %x, %e {axis = 0 : i64} : (tensor<3x4xf16>, tensor<2x4xf16>) -> tensor<5x4xf16>
  func.return %c, %s, %r, %d : tensor<5x4xf16>, tensor<3x4xf16>, tensor<3x4xf16>, tensor<5x4xf16>
}
