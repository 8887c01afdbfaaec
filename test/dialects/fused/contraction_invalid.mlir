// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @contraction_c1(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>, %c: tensor<3xf32>) {
  // expected-error@+1 {{C1: fused.matmul has 1 extra operands and 0 accesses}}
  %y = fused.matmul %a, %b, %c : (tensor<4x8xf32>, tensor<8x3xf32>, tensor<3xf32>) -> tensor<4x3xf32> {
  ^bb0(%acc: f32, %bias: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @epilogue_without_accumulator(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error@+1 {{the epilogue takes the accumulator first}}
  %y = fused.matmul %a, %b : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32> {
    %c = arith.constant 1.0 : f32
    fused.yield %c : f32
  }
  func.return
}

// -----

func.func @contraction_c2(%x: tensor<1x4x9x9xi8>, %k: tensor<6x4x3x3xi8>) {
  // expected-error@+1 {{C2: fused.convolution: the padding value 128 is not between -128 and 127}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 128 : i64}
    : (tensor<1x4x9x9xi8>, tensor<6x4x3x3xi8>) -> tensor<1x6x9x9xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return
}

// -----

func.func @contraction_c2_float(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C2: fused.convolution: the padding value 1 is not between 0 and 0}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, padding_value = 1 : i64}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x9x9xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}
