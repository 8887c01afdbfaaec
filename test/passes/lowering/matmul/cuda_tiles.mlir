// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s
// Tiles by the matrix units of a warp: copies of the next tiles are under way while these are multiplied.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}({{.*}}block_size = 128 : i64
// CHECK:   %tiles = kernel.shared : memref<{{[0-9]+}}xf16, "shared">
// CHECK-COUNT-4: kernel.copy_async
// CHECK: kernel.commit_async
// CHECK: kernel.fill_fragment {{.*}} -> vector<32xf32>
// CHECK: scf.for
// CHECK-NEXT: kernel.wait_async
// CHECK-NEXT: kernel.barrier
// CHECK-COUNT-4: kernel.copy_async
// CHECK: kernel.commit_async
// CHECK: kernel.load_matrix
// CHECK: kernel.load_matrix
// CHECK: kernel.mma f16
// CHECK: kernel.load_matrix
// CHECK: kernel.mma f16
// CHECK: kernel.wait_async {pending = 0 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK: %sums = kernel.reuse_shared
// CHECK: kernel.store_fragment
// CHECK: kernel.barrier
// CHECK: kernel.return
func.func @tiles(%x: tensor<128x64xf16>, %w: tensor<64x128xf16>) -> tensor<128x128xf16> {
  %y = fused.matmul %x, %w {fused.tactic = "cuda_tiles:64x64"} : (tensor<128x64xf16>, tensor<64x128xf16>) -> tensor<128x128xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<128x128xf16>
}
