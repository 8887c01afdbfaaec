// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Two warpgroups with 64 queries each, and one that lets the device copy keys and values to stages.
// CHECK: kernel.func @attention_{{[0-9a-f]+}}(%query: !kernel.tensor_map<f16, [1, 1, 128, 64], swizzle = 128>, %key: !kernel.tensor_map<f16, [1, 1, 128, 64], swizzle = 128>, %value: !kernel.tensor_map<f16, [1, 1, 64, 64], swizzle = 128>{{.*}}architecture = "sm_90a"{{.*}}block_size = 384 : i64
// CHECK:   %keys = kernel.shared {alignment = 1024 : i64}
// CHECK:   %values = kernel.shared {alignment = 1024 : i64}
// CHECK: kernel.mbarrier_fence
// CHECK: kernel.barrier
// CHECK: %group = kernel.warp_value
// CHECK: kernel.set_registers {count = 40 : i64}
// CHECK: kernel.load_box
// CHECK: scf.for
// CHECK: kernel.mbarrier_wait %empty
// CHECK: kernel.mbarrier_expect %keys_here
// CHECK: kernel.load_box
// CHECK: kernel.mbarrier_expect %values_here
// CHECK: kernel.load_box
// CHECK: } else {
// CHECK: kernel.set_registers {count = 232 : i64, grow = true}
// CHECK: scf.for
// CHECK: kernel.mbarrier_wait %keys_here
// CHECK: kernel.warpgroup_mma f16
// CHECK: kernel.exponential_rows
// CHECK: kernel.mbarrier_wait %values_here
// CHECK: kernel.warpgroup_mma_registers f16
// CHECK: kernel.warpgroup_accumulators
// CHECK: kernel.mbarrier_arrive %empty
// CHECK: kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<8xf16>
// CHECK: kernel.return
func.func @main(%q: tensor<1x2x128x64xf16> {trt.name = "q"}, %k: tensor<1x2x128x64xf16> {trt.name = "k"}, %v: tensor<1x2x128x64xf16> {trt.name = "v"}) -> (tensor<1x2x128x64xf16> {trt.name = "y"}) {
  %y = fused.attention %q, %k, %v {fused.tactic = "cuda_groups:128x128s2", access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["128", "64"]>}
      : (tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16>) -> tensor<1x2x128x64xf16> {
  ^bb0(%s: f32):
    %c = arith.constant 2.500000e-01 : f32
    %scaled = arith.mulf %s, %c : f32

    fused.yield %scaled : f32
  }
  func.return %y : tensor<1x2x128x64xf16>
}
