// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" --split-input-file | filecheck %s

// Bytes in lines of 128, which are 128 of them: a step of the sum multiplies twice as deep as with halves, and adds up whole
// numbers. Blocks stay; stages and barriers are those of cuda_wgmma.mlir.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%output: memref<?xi32>, %matrix: !kernel.tensor_map<i8, [128, 128], swizzle = 128>, %weights: !kernel.tensor_map<i8, [128, 128], swizzle = 128>){{.*}}block_size = 384 : i64
// CHECK:   %tiles{{(_[0-9]+)?}} = kernel.shared {alignment = 1024 : i64} : memref<131072xi8, "shared">
// CHECK:   %full = kernel.shared : memref<4xi64, "shared">
// CHECK:   %empty = kernel.shared : memref<4xi64, "shared">
// CHECK:   kernel.mbarrier_init %full{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %empty{{.*}} {arrivals = 2 : i64}
// CHECK:   kernel.mbarrier_fence
// CHECK-NEXT: }
// CHECK-NEXT: kernel.barrier
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 32768 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 32768 : i64}
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.load_box %weights
// CHECK: } else {
// CHECK:   kernel.fill_fragment {{.*}} : i32 -> vector<64xi32>
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.warpgroup_mma s8 {{.*}} {columns = 128 : i64} : vector<64xi32>
// CHECK-NEXT: kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<32xi32>
// CHECK: kernel.return
func.func @main(%x: tensor<256x512xi8>) -> tensor<256x128xi32> {
  %w = trt.constant {value = dense<3> : tensor<512x128xi8>} : tensor<512x128xi8>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:128x128s4"} : (tensor<256x512xi8>, tensor<512x128xi8>) -> tensor<256x128xi32> {
  ^bb0(%acc: i32):
    fused.yield %acc : i32
  }
  func.return %y : tensor<256x128xi32>
}

// -----

// uint8 times signed ones, rounded to int8 again: the columns of the weights are packed so that a thread has 16
// neighbouring results of a row, which one access writes.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%output: memref<?xi8>, %matrix: !kernel.tensor_map<i8, [64, 128], swizzle = 128>, %weights: !kernel.tensor_map<i8, [64, 128], swizzle = 128>, %number: f32){{.*}}block_size = 160 : i64
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.warpgroup_mma u8 {{.*}} {columns = 64 : i64} : vector<32xi32>
// CHECK:   kernel.warpgroup_accumulators
// CHECK-COUNT-2: kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>, wide = true} : vector<16xi8>
// CHECK-NOT: kernel.store
// CHECK: kernel.return
func.func @main(%x: tensor<256x512xui8>) -> tensor<256x128xi8> {
  %w = trt.constant {value = dense<3> : tensor<512x128xi8>} : tensor<512x128xi8>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:64x64s3"} : (tensor<256x512xui8>, tensor<512x128xi8>) -> tensor<256x128xi8> {
  ^bb0(%acc: i32):
    %scale = arith.constant 0.0123 : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %f = arith.sitofp %acc : i32 to f32
    %s = arith.mulf %f, %scale : f32
    %r = math.roundeven %s : f32
    %a = arith.maximumf %r, %low : f32
    %b = arith.minimumf %a, %high : f32
    %q = arith.fptosi %b : f32 to i8
    fused.yield %q : i8
  }
  func.return %y : tensor<256x128xi8>
}

// -----

// 8-bit floats lie in memory as bytes do; their accumulators are float32.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}(%output: memref<?xf32>, %matrix: !kernel.tensor_map<i8, [128, 128], swizzle = 128>, [[RIGHT:%.*]]: !kernel.tensor_map<i8, [64, 128], swizzle = 128>)
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 24576 : i64}
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.load_box [[RIGHT]][
// CHECK:   kernel.fill_fragment {{.*}} : f32 -> vector<32xf32>
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.warpgroup_mma e4m3 {{.*}} {columns = 64 : i64} : vector<32xf32>, memref<73728xi8, "shared">
// CHECK-NEXT: kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:   kernel.mbarrier_arrive %empty
// CHECK:   kernel.warpgroup_accumulators
// CHECK: kernel.return
func.func @main(%x: tensor<256x512xf8E4M3FN>, %w: tensor<128x512xf8E4M3FN>) -> tensor<256x128xf32> {
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:128x64s3", transpose_rhs = true} : (tensor<256x512xf8E4M3FN>, tensor<128x512xf8E4M3FN>) -> tensor<256x128xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<256x128xf32>
}
