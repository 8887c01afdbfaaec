// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// A block has 32 vectors of four columns, and eight threads for each. A thread loads eight rows, says in shared memory what
// they come to, and adds what those before it came to.
// CHECK: kernel.func @cumulative_{{[0-9a-f]+}}({{.*}}block_size = 256 : i64{{.*}}family = "cumulative"
// CHECK: kernel.shared : memref<1024xf32, "shared">
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32, f32, f32, f32)
// CHECK: kernel.load_fragment {{.*}}{offsets = array<i64: 0, 1, 2, 3>, wide = true} : memref<?xf16>
// CHECK: kernel.store_fragment {{.*}} : vector<4xf32>, memref<1024xf32, "shared">
// CHECK: kernel.barrier
// CHECK: kernel.load_fragment {{.*}} : memref<1024xf32, "shared"> -> vector<4xf32>
// CHECK: kernel.barrier
// CHECK: kernel.store_fragment {{.*}}wide = true} : vector<4xf16>
// CHECK: kernel.return
func.func @sums(%x: tensor<8x2048x1024xf16>) -> tensor<8x2048x1024xf16> {
  %y = fused.cumulative sum %x {axis = 1 : i64, fused.tactic = "cuda_columns"} : (tensor<8x2048x1024xf16>) -> tensor<8x2048x1024xf16>
  func.return %y : tensor<8x2048x1024xf16>
}
