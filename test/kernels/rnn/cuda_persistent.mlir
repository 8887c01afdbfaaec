// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// All blocks run together. Weights stay in registers; in each step the hidden state comes from the posts of the others,
// whose flags say of which step they are, and the accumulators of the warps are added in shared memory.
// CHECK: plan.launch {{.*}}kernel = @clear_
// CHECK: kernel.func @rnn_{{[0-9a-f]+}}(%weights: memref<?xi32>{{.*}}cooperative
// CHECK:   kernel.load_fragment %weights[{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK:   kernel.send_flagged {{.*}} flag
// CHECK:   scf.for
// CHECK-NOT: kernel.load_fragment %weights[
// CHECK:     kernel.receive_flagged {{.*}} {count = 4 : i64}
// CHECK:     kernel.store_fragment {{.*}}, %hidden
// CHECK:     kernel.barrier
// CHECK:     kernel.load_matrix %hidden
// CHECK-COUNT-2: kernel.mma f16
// CHECK:     kernel.store_fragment {{.*}}, %accumulators
// CHECK:     kernel.barrier
// CHECK:     math.tanh
// CHECK:     kernel.send_flagged {{.*}} flag
// CHECK: kernel.return
func.func @main(%x: tensor<5x1x1x64xf16>) -> tensor<5x1x64xf16> {
  %r = trt.constant {value = dense<0.1> : tensor<64x1x64xf16>} : tensor<64x1x64xf16>
  %h = trt.constant {value = dense<0.0> : tensor<1x64xf16>} : tensor<1x64xf16>
  %y, %last = fused.rnn %x, %r initial(%h : tensor<1x64xf16>) {fused.tactic = "cuda_persistent"} : tensor<5x1x1x64xf16>, tensor<64x1x64xf16> -> tensor<5x1x64xf16>, tensor<1x64xf16> {
  ^bb0(%w: f32, %s: f32, %before: f32):
    %sum = arith.addf %w, %s : f32
    %new = math.tanh %sum : f32
    fused.yield %new : f32
  } reset {
  }
  func.return %y : tensor<5x1x64xf16>
}
