// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" --split-input-file | filecheck %s

// Channels innermost: the next tile of pixels comes by copies of 16 channels of a tap, none of them for cells outside of the
// image, while the matrix units multiply the one before.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}(%weights: memref<?xi8>, %input: memref<?xi8>, %output: memref<?xi32>){{.*}}block_size = 128 : i64
// CHECK:   %tiles = kernel.shared : memref<30720xi8, "shared">
// CHECK-COUNT-2: kernel.copy_async %input[{{.*}}], %tiles[{{.*}}] valid {{.*}} {count = 16 : i64}
// CHECK-COUNT-2: kernel.copy_async %weights{{.*}} {count = 16 : i64}
// CHECK: kernel.commit_async
// CHECK: kernel.fill_fragment {{.*}} : i32 -> vector<32xi32>
// CHECK: scf.for
// CHECK-NEXT: kernel.wait_async {pending = 1 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK-COUNT-4: kernel.copy_async
// CHECK: kernel.commit_async
// CHECK-COUNT-2: kernel.load_matrix %tiles[{{.*}}] {count = 2 : i64, step = 1280 : i64}
// CHECK-NEXT: kernel.mma s8 {{.*}} {rows = 2 : i64, columns = 4 : i64}
// CHECK-COUNT-2: kernel.load_matrix
// CHECK-NEXT: kernel.mma s8
// CHECK: kernel.wait_async {pending = 0 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: %accumulators = kernel.reuse_shared %tiles
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x16xi32, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<3> : tensor<64x64x3x3xi8>} : tensor<64x64x3x3xi8>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_int8_tiles:64x64", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xi8>) -> tensor<2x64x16x16xi32, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<2x64x16x16xi32, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>
}

// -----

// Channels that lie apart: a thread reads the bytes of the next tile into registers, multiplies the tile that is there, and
// then puts them into the other of two stages.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}(%weights: memref<?xi8>, %input: memref<?xi8>, %output: memref<?xi32>)
// CHECK:   %tiles = kernel.shared : memref<20480xi8, "shared">
// CHECK: scf.for
// CHECK-COUNT-32: kernel.load_fragment %input[{{.*}}] valid {{.*}} {offsets = array<i64: 0>, wide = true}
// CHECK-COUNT-2: kernel.copy_async %weights
// CHECK: kernel.commit_async
// CHECK-NOT: kernel.store_fragment
// CHECK-COUNT-2: kernel.mma s8
// CHECK-COUNT-32: kernel.store_fragment {{.*}}, %tiles[
// CHECK: kernel.wait_async {pending = 0 : i64}
// CHECK-NEXT: kernel.barrier
// CHECK: %accumulators = kernel.reuse_shared %tiles
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x16x16xi8>) -> tensor<2x64x16x16xi32> {
  %w = trt.constant {value = dense<3> : tensor<64x64x3x3xi8>} : tensor<64x64x3x3xi8>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_int8_tiles:64x64", stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x16x16xi8>, tensor<64x64x3x3xi8>) -> tensor<2x64x16x16xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<2x64x16x16xi32>
}
