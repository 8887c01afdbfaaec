// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Warps with 16 queries each: keys and values come in stages, sums are scaled when a larger score is met.
// CHECK: kernel.func @attention_{{[0-9a-f]+}}({{.*}}block_size = 128 : i64
// CHECK:   %queries = kernel.shared
// CHECK:   %stages = kernel.shared
// CHECK: kernel.commit_async
// CHECK: %results = kernel.fill_fragment
// CHECK-NEXT: %largest = kernel.fill_fragment
// CHECK-NEXT: %total = kernel.fill_fragment
// CHECK: scf.for
// CHECK: kernel.wait_async
// CHECK-NEXT: kernel.barrier
// CHECK: kernel.copy_async
// CHECK: kernel.mma f16
// CHECK: kernel.reduce_rows
// CHECK: kernel.exponential_rows
// CHECK: kernel.scale_rows
// CHECK: kernel.pack_accumulators
// CHECK: kernel.mma f16
// CHECK: kernel.load_fragment %kept[{{.*}} -> vector<8xf32>
// CHECK: kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<8xf16>
// CHECK: kernel.return
func.func @main(%q: tensor<1x2x128x64xf16> {trt.name = "q"}, %k: tensor<1x2x128x64xf16> {trt.name = "k"}, %v: tensor<1x2x128x64xf16> {trt.name = "v"}) -> (tensor<1x2x128x64xf16> {trt.name = "y"}) {
  %y = fused.attention %q, %k, %v {fused.tactic = "cuda_flash:64x64w4", access = [#fused.access<["d0", "d1", "d2", "d4"]>, #fused.access<["d0", "d1", "d3", "d4"]>, #fused.access<["d0", "d1", "d3", "d5"]>], reduced = #trt.dims<["128", "64"]>}
      : (tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16>) -> tensor<1x2x128x64xf16> {
  ^bb0(%s: f32):
    %c = arith.constant 2.500000e-01 : f32
    %scaled = arith.mulf %s, %c : f32

    fused.yield %scaled : f32
  }
  func.return %y : tensor<1x2x128x64xf16>
}
