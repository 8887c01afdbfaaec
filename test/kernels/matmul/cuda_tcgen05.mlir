// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda arch=sm_100a device=b200}" --split-input-file | filecheck %s

// A warp copies, a thread multiplies into one of two tiles of accumulators, and two warpgroups write the other one. The matrix
// unit gives stages back; warps say when they have loaded a tile's last columns; columns are freed at the end.
// CHECK: kernel.func @matmul_{{[0-9a-f]+}}({{.*}}%matrix: !kernel.tensor_map<f16, [128, 64], swizzle = 128>, %weights: !kernel.tensor_map<f16, [128, 64], swizzle = 128>
// CHECK:   kernel.mbarrier_init %full{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %empty{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %done{{.*}} {arrivals = 1 : i64}
// CHECK:   kernel.mbarrier_init %free{{.*}} {arrivals = 8 : i64}
// CHECK:   kernel.tensor_memory_allocate %tensor_memory{{.*}} {columns = 256 : i64}
// CHECK:   kernel.tensor_memory_relinquish
// CHECK:   kernel.tensor_fence
// CHECK:   kernel.barrier
// CHECK:   kernel.tensor_fence {after}
// CHECK:   kernel.load_box %weights
// CHECK:   kernel.wait_dependency
// CHECK:   kernel.load_box %matrix
// CHECK:   kernel.mbarrier_wait %free
// CHECK:   kernel.mbarrier_wait %full
// CHECK:   kernel.tensor_fence {after}
// CHECK:   kernel.tensor_mma f16 {{.*}} {columns = 128 : i64}
// CHECK:   kernel.tensor_commit %empty
// CHECK:   kernel.tensor_commit %done
// CHECK:   kernel.mbarrier_wait %done
// CHECK:   kernel.tensor_fence {after}
// CHECK:   kernel.tensor_memory_load {{.*}} : vector<32xf32>
// CHECK:   kernel.tensor_memory_load {{.*}} : vector<32xf32>
// CHECK:   kernel.tensor_fence
// CHECK:   kernel.mbarrier_arrive %free
// CHECK:   kernel.barrier
// CHECK:   kernel.tensor_memory_free {{.*}} {columns = 256 : i64}
// CHECK: kernel.return
func.func @main(%x: tensor<512x256xf16>) -> tensor<512x128xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<256x128xf16>} : tensor<256x128xf16>
  %y = fused.matmul %x, %w {fused.tactic = "cuda_tcgen05:128x128s4"} : (tensor<512x256xf16>, tensor<256x128xf16>) -> tensor<512x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<512x128xf16>
}

// -----

// Rows that begin anywhere are left to others.
// CHECK-NOT: kernel.tensor_mma
func.func @main(%x: tensor<512x63xf16>, %w: tensor<63x128xf16>) -> tensor<512x128xf16> {
  %y = fused.matmul %x, %w : (tensor<512x63xf16>, tensor<63x128xf16>) -> tensor<512x128xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<512x128xf16>
}
