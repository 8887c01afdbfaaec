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
