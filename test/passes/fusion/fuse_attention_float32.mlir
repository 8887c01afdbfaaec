// RUN: rt-opt %s --split-input-file -p 'fuse-attention{elements=float32 multiple=16}' | filecheck %s

// CHECK-LABEL: @whole_vectors
// CHECK: fused.attention
// CHECK-NOT: fused.softmax
func.func @whole_vectors(%q: tensor<5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x32xf32>) -> tensor<5x32xf32> {
  %s = fused.matmul %q, %k {transpose_rhs = true} : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %p = fused.softmax %s {axis = 1 : i64} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = fused.matmul %p, %v : (tensor<5x7xf32>, tensor<7x32xf32>) -> tensor<5x32xf32> {
  ^bb0(%f: f32):
    fused.yield %f : f32
  }
  func.return %y : tensor<5x32xf32>
}

// -----

// CHECK-LABEL: @parts_of_vectors
// CHECK-NOT: fused.attention
// CHECK: fused.softmax
func.func @parts_of_vectors(%q: tensor<5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x24xf32>) -> tensor<5x24xf32> {
  %s = fused.matmul %q, %k {transpose_rhs = true} : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  %p = fused.softmax %s {axis = 1 : i64} : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %y = fused.matmul %p, %v : (tensor<5x7xf32>, tensor<7x24xf32>) -> tensor<5x24xf32> {
  ^bb0(%f: f32):
    fused.yield %f : f32
  }
  func.return %y : tensor<5x24xf32>
}
