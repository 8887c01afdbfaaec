// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// A warp holds a row: each thread four vectors. It sums up its neighbours, and five exchanges for each vector say what
// the threads before it have; no loop is left.
// CHECK: kernel.func @cumulative_{{[0-9a-f]+}}({{.*}}block_size = 128 : i64{{.*}}family = "cumulative"
// CHECK: kernel.load_fragment {{.*}}offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true
// CHECK: kernel.load_fragment
// CHECK: kernel.load_fragment
// CHECK: kernel.load_fragment
// CHECK-NOT: scf.for
// CHECK: arith.addf {{.*}} : f32
// CHECK: kernel.shuffle {{.*}} {mask = 1 : i64} : f32 -> f32
// CHECK: arith.select
// CHECK: kernel.shuffle {{.*}} {mask = 16 : i64} : f32 -> f32
// CHECK: arith.truncf
// CHECK: kernel.store_fragment {{.*}}wide = true
// CHECK: kernel.return
func.func @sums(%x: tensor<4096x1024xf16>) -> tensor<4096x1024xf16> {
  %y = fused.cumulative sum %x {axis = 1 : i64, fused.tactic = "cuda_scan"} : (tensor<4096x1024xf16>) -> tensor<4096x1024xf16>
  func.return %y : tensor<4096x1024xf16>
}
