// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" --split-input-file -t numba-cuda | filecheck %s
// A product by warpgroups: one thread starts copies to a ring of stages, warpgroups multiply what has arrived.

// persistent blocks: two warpgroups that multiply, and one whose first thread copies.
// CHECK:       load = load_box("float16", 2)
// CHECK:       store = store_fragment("float16", (0, 1, 2, 3, 4, 5, 6, 7, 32, 33, {{.*}}), group=8)
// CHECK:       # 384 threads per block, 131328 bytes of shared memory
// CHECK-NEXT:  def matmul_{{[0-9a-f]+}}(output: "float16*", matrix: "tensor_map", matrix_1: "tensor_map"):
// CHECK:           tiles = shared("float16", 0)()
// CHECK-NEXT:      full = shared("int64", 131072)()
// CHECK-NEXT:      empty = shared("int64", 131200)()
// CHECK:                   mbarrier_init(full, stage, 1)
// CHECK-NEXT:              mbarrier_init(empty, stage, 2)
// CHECK:           barrier()
// CHECK-NEXT:      launch_dependents()
// CHECK:           if group == 2:
// CHECK-NEXT:          if thread == 256:
// CHECK:                   mbarrier_expect(full, {{.*}}, 32768)
// CHECK:                   wait_dependency()
// CHECK:                           load(matrix, {{.*}}, tiles, {{.*}}, full, {{.*}})
// CHECK-NEXT:                      load(matrix_1, {{.*}}, tiles, {{.*}}, full, {{.*}})
// CHECK:                           mbarrier_wait(empty, {{.*}})
// CHECK-NEXT:                      mbarrier_expect(full, {{.*}}, 32768)
// CHECK-NEXT:                      load(matrix, {{.*}}, tiles, {{.*}}, full, {{.*}})
// CHECK-NEXT:                      load(matrix_1, {{.*}}, tiles, {{.*}}, full, {{.*}})
// CHECK:           else:
// CHECK-NEXT:          wait_dependency()
// CHECK:                   mbarrier_wait(full, {{.*}})
// CHECK:                   warpgroup_mma("f16", 128)(total, tiles, {{.*}}, tiles, {{.*}})
// CHECK-NEXT:              warpgroup_wait(1)()
// CHECK-NEXT:              if {{.*}}:
// CHECK-NEXT:                  mbarrier_arrive(empty, {{.*}})
// CHECK:               warpgroup_accumulators("float32", 64)({{.*}})
// CHECK-NEXT:          if {{.*}}:
// CHECK-NEXT:              mbarrier_arrive(empty, {{.*}})
// CHECK-NEXT:          {{.*}} = join_columns("float32", 64, 8)({{.*}})
func.func @stays(%x: tensor<512x256xf16>, %w: tensor<1024x256xf16>) -> tensor<512x1024xf16> {
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:128x128s4", transpose_rhs = true} :
      (tensor<512x256xf16>, tensor<1024x256xf16>) -> tensor<512x1024xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<512x1024xf16>
}

// -----

// Clusters that share a sum: the weights are copied before the launch before has ended.
// CHECK:       # 160 threads per block, {{[0-9]+}} bytes of shared memory, 4 blocks per cluster
// CHECK:           launch_dependents()
// CHECK:           cluster_rank()
// CHECK:           if warp == 4:
// CHECK-NEXT:          if thread == 128:
// CHECK:                   for {{.*}} in range({{.*}}):
// CHECK-NEXT:                  mbarrier_expect(full, {{.*}})
// CHECK-NEXT:                  load(weights, {{.*}})
// CHECK-NEXT:              wait_dependency()
// CHECK-NEXT:              for {{.*}} in range({{.*}}):
// CHECK-NEXT:                  load(matrix, {{.*}})
// CHECK:           else:
// CHECK-NEXT:          wait_dependency()
// CHECK:               store({{.*}}, accumulators, {{.*}})
// CHECK-NEXT:      cluster_barrier()
// CHECK-NEXT:      if thread < 128:
// CHECK:               remote(accumulators, 0)
// CHECK:               remote(accumulators, 3)
// CHECK:           cluster_barrier()
func.func @shares(%x: tensor<64x1024xf16>) -> tensor<64x64xf16> {
  %w = trt.constant {value = dense<1.0> : tensor<64x1024xf16>} : tensor<64x1024xf16>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:64x64s3c4", transpose_rhs = true} :
      (tensor<64x1024xf16>, tensor<64x1024xf16>) -> tensor<64x64xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<64x64xf16>
}

// -----

// A convolution: the window's walk over the images, tap by tap.
// CHECK:       load_1 = load_window("float16", 2)
// CHECK:       def convolution_{{[0-9a-f]+}}({{.*}}images: "tensor_map", weights: "tensor_map"):
// CHECK:               load_1(images, {{.*}})
func.func @convolution(%x: tensor<1x64x8x8xf16>) -> tensor<1x64x8x8xf16> {
  %w = trt.constant {value = dense<1.0> : tensor<64x64x3x3xf16>} : tensor<64x64x3x3xf16>
  %l = fused.reformat %x : (tensor<1x64x8x8xf16>) -> tensor<1x64x8x8xf16, #trt.dims<["1", "64", "8", "8"], order = [0, 2, 3, 1]>>
  %y = fused.convolution %l, %w {fused.tactic = "cuda_wgmma:64x64s3", stride = array<i64: 1, 1>,
      dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} :
      (tensor<1x64x8x8xf16, #trt.dims<["1", "64", "8", "8"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xf16>) ->
      tensor<1x64x8x8xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<1x64x8x8xf16>
}

// -----

// Warpgroups take turns: each has every other tile, and goes on where the stages of the other's tile end. What the
// epilogue adds is read before the tile is multiplied.
// CHECK:       # 384 threads per block, {{[0-9]+}} bytes of shared memory
// CHECK:           if group == 2:
// CHECK:           else:
// CHECK:               for {{.*}} in range({{.*}}):
// CHECK-NEXT:              {{.*}} = int32({{.*}} * 2 + group)
// CHECK:                   {{.*}} = load_1(residual, {{.*}})
// CHECK:                   rem(own * 4, 6), rem(div(own * 4, 6), 2)
// CHECK:                   mbarrier_wait(full, {{.*}})
// CHECK:                   warpgroup_accumulators("float32", 64)({{.*}})
func.func @takes_turns(%x: tensor<512x256xf16>, %w: tensor<1024x256xf16>, %r: tensor<512x1024xf16>) -> tensor<512x1024xf16> {
  %y = fused.matmul %x, %w, %r {fused.tactic = "cuda_wgmma:64x128s6t", transpose_rhs = true,
      access = [#fused.access<["d0", "d1"]>]} :
      (tensor<512x256xf16>, tensor<1024x256xf16>, tensor<512x1024xf16>) -> tensor<512x1024xf16> {
  ^bb0(%acc: f32, %0: f16):
    %wide = arith.extf %0 : f16 to f32
    %sum = arith.addf %acc, %wide : f32
    %n = arith.truncf %sum : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<512x1024xf16>
}

// -----

// Known columns lie in the order of threads: nobody exchanges sums.
// CHECK:       warpgroup_mma("f16", 64)(
// CHECK:       join_columns("float32", 32, 2)(
func.func @known(%x: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %w = trt.constant {value = dense<1.0> : tensor<64x64xf16>} : tensor<64x64xf16>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_wgmma:64x64s4", transpose_rhs = true} :
      (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16> {
  ^bb0(%acc: f32):
    %n = arith.truncf %acc : f32 to f16
    fused.yield %n : f16
  }
  func.return %y : tensor<64x64xf16>
}
