// RUN: rt-opt %s --to memory -t numba-cpu | filecheck %s
// RUN: rt-opt %s --to memory --target cuda -t numba-cuda | filecheck %s --check-prefix CUDA

// One kernel for two layers: its text has no name of a layer, but a reader sees which launches run it.
// CHECK: # launch 0: first
// CHECK-NEXT: # launch 1: second
// CHECK-NEXT: def pointwise_
// CHECK-NOT: def
// CUDA: # launch 0: first
// CUDA-NEXT: # launch 1: second
// CUDA-NEXT: # {{[0-9]+}} threads per block
// CUDA-NEXT: def pointwise_
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = trt.unary exp %a : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %d = trt.unary exp %b : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  func.return %c, %d : tensor<4xf32>, tensor<4xf32>
}
