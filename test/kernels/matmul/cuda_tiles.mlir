// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" --split-input-file | filecheck %s
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
// CHECK: %accumulators = kernel.reuse_shared
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

// -----

// Bytes by the matrix units of a warp, three stages of lines of 64 bytes, 80 apart so that no two lines of a matrix share
// banks: weights are packed along the depth, and all copies take 16 bytes.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%lhs: memref<?xi8>, %weights: memref<?xi8>, %output: memref<?xi32>){{.*}}block_size = 128 : i64
// CHECK:   %tiles = kernel.shared : memref<30720xi8, "shared">
// CHECK-COUNT-2: kernel.copy_async %lhs{{.*}} {count = 16 : i64}
// CHECK-COUNT-2: kernel.copy_async %weights{{.*}} {count = 16 : i64}
// CHECK: kernel.commit_async
// CHECK: kernel.fill_fragment {{.*}} : i32 -> vector<32xi32>
// CHECK: scf.for
// CHECK-NEXT: kernel.wait_async {pending = 1 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK-COUNT-4: kernel.copy_async {{.*}} {count = 16 : i64}
// CHECK: kernel.commit_async
// CHECK-COUNT-2: kernel.load_matrix %tiles[{{.*}}] {count = 2 : i64, step = 1280 : i64}
// CHECK-NEXT: kernel.mma s8 {{.*}} {rows = 2 : i64, columns = 4 : i64} : vector<32xi32>
// CHECK-COUNT-2: kernel.load_matrix %tiles[{{.*}}] {count = 2 : i64, step = 1280 : i64}
// CHECK-NEXT: kernel.mma s8
// CHECK-NOT: kernel.mma
// CHECK: kernel.wait_async {pending = 0 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: %accumulators = kernel.reuse_shared %tiles {{.*}} -> memref<4352xi32, "shared">
// CHECK: kernel.store_fragment {{.*}}, %accumulators[
// CHECK-NEXT: kernel.barrier
// CHECK: kernel.return
func.func @bytes(%x: tensor<128x256xi8>) -> tensor<128x128xi32> {
  %w = trt.constant {value = dense<3> : tensor<256x128xi8>} : tensor<256x128xi8>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_tiles:64x64"} : (tensor<128x256xi8>, tensor<256x128xi8>) -> tensor<128x128xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<128x128xi32>
}

// -----

// Float32 without matrix units: each thread adds outer products of four rows and four columns. In the smallest tile rows
// whose depth is contiguous stay so: an access has four lines of the depth of a row, one of another operand four columns.
// A sum in two parts takes twice the blocks; each leaves its part in scratch memory, from where a second kernel adds them
// up.
// CHECK: plan.launch {{.*}}kernel = [[PARTS:@matmul_[0-9a-f]+]], {{.*}}grid = [#plan.expression<"4">, #plan.expression<"2">, #plan.expression<"1">]
// CHECK: plan.launch {{.*}}kernel = [[TOTAL:@matmul_sum_[0-9a-f]+]],
// CHECK: kernel.func [[PARTS]](%lhs: memref<?xf32>, %rhs: memref<?xf32>, %scratch: memref<?xf32>){{.*}}block_size = 64 : i64
// CHECK:   %tiles = kernel.shared : memref<6912xf32, "shared">
// CHECK-COUNT-4: kernel.copy_async %lhs{{.*}} {count = 4 : i64}
// CHECK-COUNT-4: kernel.copy_async %rhs{{.*}} {count = 4 : i64}
// CHECK: kernel.commit_async
// CHECK: kernel.wait_async {pending = 1 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK: kernel.commit_async
// CHECK: scf.for
// CHECK: kernel.load_fragment %tiles[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 144, 145, 146, 147, 288, 289, 290, 291, 432, 433, 434, 435>, wide = true}
// CHECK: kernel.load_fragment %tiles[{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK: kernel.outer_product {{.*}} {left_lines = 4 : i64} : vector<16xf32>, vector<16xf32>, vector<4xf32>
// CHECK: kernel.outer_product {{.*}} {line = 1 : i64, left_lines = 4 : i64} : vector<16xf32>, vector<16xf32>, vector<4xf32>
// CHECK-COUNT-6: kernel.outer_product
// CHECK-NOT: kernel.outer_product
// CHECK: kernel.wait_async {pending = 0 : i64}
// CHECK: kernel.store {{.*}}, %scratch[
// CHECK: kernel.return
// CHECK: kernel.func [[TOTAL]](%output: memref<?xf32>, %scratch: memref<?xf32>
// CHECK: kernel.load %scratch
// CHECK: kernel.store {{.*}}, %output[
func.func @parts(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32> {
  %y = fused.matmul %x, %w {fused.tactic = "cuda_tiles:32x32p2"} : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<64x64xf32>
}

// -----

// In larger tiles such rows become columns on their way, four bytes at a time: eight lines of the depth of each row, whose
// copies share their addresses. A thread has eight rows and four columns.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%lhs: memref<?xf32>, %rhs: memref<?xf32>, %output: memref<?xf32>){{.*}}block_size = 128 : i64
// CHECK: kernel.copy_async %lhs[%[[FROM:.*]]], %tiles[%[[TO:.*]]] {count = 1 : i64}
// CHECK-NEXT: kernel.copy_async %lhs[%[[FROM]]], %tiles[%[[TO]]] {count = 1 : i64, offsets = array<i64: 8, 544>}
// CHECK: kernel.copy_async %lhs[%[[FROM]]], %tiles[%[[TO]]] {count = 1 : i64, offsets = array<i64: 4096, 16>}
// CHECK: kernel.copy_async %rhs{{.*}} {count = 4 : i64}
// CHECK: scf.for
// CHECK: kernel.load_fragment %tiles[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 16, 17, 18, 19>, wide = true}
// CHECK: kernel.load_fragment %tiles[{{.*}}] {offsets = array<i64: 0, 1, 2, 3>, wide = true}
// CHECK-COUNT-16: kernel.outer_product {{.*}} : vector<32xf32>, vector<8xf32>, vector<4xf32>
// CHECK-NOT: kernel.outer_product
func.func @transposed(%x: tensor<64x256xf32>, %w: tensor<256x64xf32>) -> tensor<64x64xf32> {
  %y = fused.matmul %x, %w {fused.tactic = "cuda_tiles:64x64"} : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<64x64xf32>
}
