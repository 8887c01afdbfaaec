// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// Bytes of 64 channels are a line of 64 bytes. The residual is copied ahead, a tile at a time into one of three slots, as soon
// as all threads of a warpgroup have read what was there; warpgroups take turns at multiplying, so that one rounds its
// accumulators while the other multiplies. A thread has 16 neighbouring bytes of both.
// CHECK: kernel.func @convolution_{{[0-9a-f]+}}({{.*}}%images: !kernel.tensor_map<i8, [64, 64], swizzle = 64, spatial = 2>, %weights: !kernel.tensor_map<i8, [64, 64], swizzle = 64>, [[AHEAD:%.*]]: !kernel.tensor_map<i8, [64, 64]>, {{.*}}block_size = 384 : i64
// CHECK:   %slots = kernel.shared : memref<12288xi8, "shared">
// CHECK:   %slot_full = kernel.shared : memref<3xi64, "shared">
// CHECK:   %slot_empty = kernel.shared : memref<3xi64, "shared">
// CHECK:   %tiles{{(_[0-9]+)?}} = kernel.shared {alignment = 1024 : i64} : memref<24576xi8, "shared">
// CHECK:   %full = kernel.shared : memref<3xi64, "shared">
// CHECK:   %order = kernel.shared : memref<2xi64, "shared">
// CHECK:   kernel.mbarrier_init %slot_full{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %slot_empty{{.*}} {arrivals = 128 : i64}
// CHECK:   kernel.mbarrier_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.mbarrier_expect %full{{.*}} {bytes = 8192 : i64}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_window %images
// CHECK:   kernel.mbarrier_wait %empty
// CHECK:   kernel.mbarrier_expect %full
// CHECK:   kernel.load_window %images
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.mbarrier_wait %slot_empty
// CHECK:   kernel.mbarrier_expect %slot_full{{.*}} {bytes = 4096 : i64}
// CHECK:   kernel.load_box [[AHEAD]][{{.*}}], %slots[
// CHECK: } else {
// CHECK:   kernel.each_warpgroup
// CHECK:     kernel.mbarrier_wait %order
// CHECK:     kernel.fill_fragment {{.*}} : i32 -> vector<32xi32>
// CHECK:     kernel.mbarrier_wait %full
// CHECK:     kernel.warpgroup_mma s8 {{.*}} {columns = 64 : i64, line = 64 : i64}
// CHECK-NEXT: kernel.warpgroup_wait {pending = 1 : i64}
// CHECK:     kernel.mbarrier_arrive %empty
// CHECK:     kernel.mbarrier_arrive %order
// CHECK:     kernel.warpgroup_accumulators
// CHECK:     kernel.mbarrier_wait %slot_full
// CHECK-COUNT-2: kernel.load_fragment %slots[{{.*}}wide = true} {{.*}} -> vector<16xi8>
// CHECK:     kernel.mbarrier_arrive %slot_empty
// CHECK-COUNT-2: kernel.store_fragment {{.*}}, %output[{{.*}}wide = true} : vector<16xi8>
// CHECK: kernel.return
func.func @main(%x: tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>, %r: tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  %w = trt.constant {value = dense<3> : tensor<64x64x3x3xi8>} : tensor<64x64x3x3xi8>
  %y = fused.convolution %x, %w, %r {fused.tactic = "cuda_wgmma:64x64s3te1", access = [#fused.access<["d0", "d1", "d2", "d3"]>], stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>} : (tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>, tensor<64x64x3x3xi8>, tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>) -> tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>> {
  ^bb0(%acc: i32, %other: i8):
    %scale = arith.constant 0.0123 : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %f = arith.sitofp %acc : i32 to f32
    %s = arith.mulf %f, %scale : f32
    %g = arith.sitofp %other : i8 to f32
    %t = arith.addf %s, %g : f32
    %r2 = math.roundeven %t : f32
    %a = arith.maximumf %r2, %low : f32
    %b = arith.minimumf %a, %high : f32
    %q = arith.fptosi %b : f32 to i8
    fused.yield %q : i8
  }
  func.return %y : tensor<2x64x16x16xi8, #trt.dims<["2", "64", "16", "16"], order = [0, 2, 3, 1]>>
}
