// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// One block has all weights in registers and the hidden state in shared memory twice: a step costs one barrier.
// CHECK: kernel.func @rnn_{{[0-9a-f]+}}(%weights: memref<?xi32>
// CHECK-NOT: cooperative
// CHECK:   kernel.load_fragment %weights[{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK:   scf.for %{{.*}} iter_args
// CHECK-NOT: kernel.barrier
// CHECK:     kernel.load_matrix %hidden
// CHECK-COUNT-4: kernel.mma f16
// CHECK-NOT: kernel.barrier
// CHECK:     math.tanh
// CHECK:     kernel.store {{.*}}, %hidden
// CHECK:     kernel.barrier
// CHECK-NOT: kernel.barrier
// CHECK: kernel.return
func.func @main(%x: tensor<5x1x1x64xf16>) -> tensor<5x1x64xf16> {
  %r = trt.constant {value = dense<0.1> : tensor<64x1x64xf16>} : tensor<64x1x64xf16>
  %h = trt.constant {value = dense<0.0> : tensor<1x64xf16>} : tensor<1x64xf16>
  %y, %last = fused.rnn %x, %r initial(%h : tensor<1x64xf16>) {fused.tactic = "cuda_one_block"} : tensor<5x1x1x64xf16>, tensor<64x1x64xf16> -> tensor<5x1x64xf16>, tensor<1x64xf16> {
  ^bb0(%w: f32, %s: f32, %before: f32):
    %sum = arith.addf %w, %s : f32
    %new = math.tanh %sum : f32
    fused.yield %new : f32
  } reset {
  }
  func.return %y : tensor<5x1x64xf16>
}
