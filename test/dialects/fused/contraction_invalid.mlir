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

// -----

func.func @contraction_c3(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C3: fused.convolution of 2 spatial axes does not pool windows of [2]}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, pooling = #fused.pooling<max [2]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @contraction_c3_size(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C3: fused.convolution of 2 spatial axes does not pool windows of [2, 0]}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, pooling = #fused.pooling<max [2, 0]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @contraction_c3_integers(%x: tensor<1x4x9x9xi8>, %k: tensor<6x4x3x3xi8>) {
  // expected-error@+1 {{C3: fused.convolution pools floating-point results}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, pooling = #fused.pooling<max [2, 2]>}
    : (tensor<1x4x9x9xi8>, tensor<6x4x3x3xi8>) -> tensor<1x6x3x3xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return
}

// -----

func.func @contraction_c5_axes(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C5: fused.convolution of 2 spatial axes does not add up boxes of [4]}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, totals = #fused.totals<[4] of [7]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x2x2xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @contraction_c5_count(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C5: fused.convolution adds up [2, 2] boxes and gives [2, 3]}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, totals = #fused.totals<[4, 4] of [7, 7]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x2x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @contraction_c5_integers(%x: tensor<1x4x9x9xi8>, %k: tensor<6x4x3x3xi8>) {
  // expected-error@+1 {{C5: fused.convolution adds up floating-point results}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, totals = #fused.totals<[4, 4] of [7, 7]>}
    : (tensor<1x4x9x9xi8>, tensor<6x4x3x3xi8>) -> tensor<1x6x2x2xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return
}

// -----

func.func @contraction_c3_room(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C3: windows of fused.convolution cover 8 elements of an axis that has 7}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, pooling = #fused.pooling<max [2, 2]>}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x4x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}

// -----

func.func @contraction_c4(%x: tensor<1x4x9x9xf32>, %k: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{C4: fused.convolution: groups of 4 channels that give 6 have no 4 equal parts}}
  %y = fused.convolution %x, %k {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, merged_groups = 4 : i64}
    : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return
}
