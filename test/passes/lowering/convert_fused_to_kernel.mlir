// RUN: rt-opt %s -p 'convert-fused-to-kernel{tactic=generic}' | filecheck %s
// RUN: rt-opt %s -p 'convert-fused-to-kernel{target=cuda tactic=generic}' | filecheck %s --check-prefix=CUDA
// Tensors become buffers with sizes that the host computes; equal kernels are one; on a GPU sizes are constants.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "data"})
func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "data"}) -> (tensor<?x3xf32, #trt.dims<["n", "3"]>>) {
  // CHECK: [[X:%.*]] = plan.input %x
  // CHECK: [[A:%.*]] = plan.buffer {bytes = #plan.expression<"12*n">} : !plan.memory
  // CHECK: plan.launch [[X]], [[A]] {kernel = @[[NEG:pointwise_[0-9a-f]+]], args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"3*n">]
  // CUDA: plan.launch {{.*}} args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"3*n">]
  %0 = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>> {
  ^bb0(%e: f32):
    %v = arith.negf %e : f32
    fused.yield %v : f32
  }
  // CHECK: [[B:%.*]] = plan.buffer
  // CHECK: plan.launch [[A]], [[B]] {kernel = @[[NEG]]
  %1 = fused.pointwise %0 {access = [#fused.access<["d0", "d1"]>]} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>> {
  ^bb0(%e: f32):
    %v = arith.negf %e : f32
    fused.yield %v : f32
  }
  // A reversed read starts at the last element.
  // CHECK: plan.launch {{.*}} args = [#plan.pointer<0, "8">, #plan.pointer<1, "0">
  // CUDA: plan.launch {{.*}} args = [#plan.pointer<0, "8">, #plan.pointer<1, "0">, #plan.expression<"n">]
  %2 = fused.pointwise %1 {access = [#fused.access<["d0", "2 - d1"]>]} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  }
  // CHECK: [[Y:%.*]] = plan.output
  // CHECK-NEXT: func.return [[Y]]
  func.return %2 : tensor<?x3xf32, #trt.dims<["n", "3"]>>
}

// CHECK: kernel.func @[[NEG]](%{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, [[N:%.*]]: index) attributes {target = "cpu", family = "pointwise"}
// CHECK-NEXT: kernel.parallel([[N]]) {
// CHECK-NOT: @[[NEG]](

// CUDA: kernel.func
// CUDA: kernel.load {{.*}} strides [3, -1]
