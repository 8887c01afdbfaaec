// RUN: rt-opt %s --split-input-file -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// A block has 32 columns and 32 threads for each, which halve what is left to combine in five steps.
// CHECK-LABEL: builtin.module
// CHECK: kernel.func @reduction_{{[0-9a-f]+}}({{.*}}block_size = 1024 : i64{{.*}}family = "reduction"
// CHECK: kernel.shared : memref<1024xf32, "shared">
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32)
// CHECK: kernel.load {{.*}} : memref<?xf16>
// CHECK-COUNT-6: kernel.barrier
// CHECK: arith.truncf
// CHECK: kernel.store {{.*}} : f16, memref<?xf16>
// CHECK: kernel.return
func.func @sums(%x: tensor<16x256x256xf16>) -> tensor<16x256xf16> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d2", "d1"]>], reduced = #trt.dims<["256"]>} : (tensor<16x256x256xf16>) -> tensor<16x256xf16> {
  ^bb0(%e: f16):
    %w = arith.extf %e : f16 to f32
    fused.yield %w : f32
  } {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<16x256xf16>
}

// -----

// Rows that lie along memory are read by blocks along memory, and few rows by a thread for each column.
// CHECK-LABEL: builtin.module
// CHECK-NOT: kernel.shared
// CHECK: kernel.parallel
func.func @others(%x: tensor<16x256xf32>, %z: tensor<16x40x256xf32>) -> (tensor<16xf32>, tensor<16x256xf32>) {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["256"]>} : (tensor<16x256xf32>) -> tensor<16xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %v = fused.reduction add(%z) {access = [#fused.access<["d0", "d2", "d1"]>], reduced = #trt.dims<["40"]>} : (tensor<16x40x256xf32>) -> tensor<16x256xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y, %v : tensor<16xf32>, tensor<16x256xf32>
}
