// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" --split-input-file -t numba-cuda | filecheck %s

// Few long rows: a block sums each. Warps exchange what they have, then the results of the warps go through shared memory.
// CHECK:       exchange = shuffle("float32", 16)
// CHECK:       # 256 threads per block, 128 bytes of shared memory
// CHECK-NEXT:  def reduction_{{.*}}(buffer: "float32*", buffer_1: "float32*"):
// CHECK-NEXT:      partial = shared_memory()
// CHECK-NEXT:      thread = thread_id()
// CHECK-NEXT:      number = block_id_0()
// CHECK-NEXT:      v = float32(0.0)
// CHECK-NEXT:      for i in range(thread, int32(300), int32(256)):
// CHECK-NEXT:          v_1 = buffer[int32(number * 300 + i)]
// CHECK-NEXT:          v = v + v_1
// CHECK-NEXT:      v_2 = exchange(v)
// CHECK-NEXT:      v_3 = v + v_2
// CHECK:           barrier()
// CHECK:           if int32(truncated_rem(uint32(thread), uint32(32))) == int32(0):
// CHECK-NEXT:          partial[{{.*}}] = {{.*}}
// CHECK-NEXT:      barrier()
// CHECK-NEXT:      {{.*}} = partial[int32(truncated_rem(uint32(thread), uint32(8)))]
// CHECK:           if thread == int32(0):
// CHECK-NEXT:          buffer_1[number] = {{.*}}
func.func @main(%x: tensor<40x300xf32>) -> tensor<40xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["300"]>} : (tensor<40x300xf32>) -> tensor<40xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<40xf32>
}

// -----

// Short rows: a thread sums each by itself.
// CHECK:       # 64 threads per block, 0 bytes of shared memory
// CHECK-NEXT:  def reduction_{{.*}}(buffer: "float32*", buffer_1: "float32*"):
// CHECK:           if number < int32(40):
// CHECK-NEXT:          v = float32(0.0)
// CHECK-NEXT:          for i in range(int32(9)):
// CHECK-NEXT:              v_1 = buffer[int32(number * 9 + i)]
// CHECK-NEXT:              v = v + v_1
// CHECK-NEXT:          buffer_1[number] = v
func.func @main(%x: tensor<40x9xf32>) -> tensor<40xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["9"]>} : (tensor<40x9xf32>) -> tensor<40xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<40xf32>
}
