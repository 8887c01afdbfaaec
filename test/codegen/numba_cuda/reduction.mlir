// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads{device=a100}" --split-input-file -t numba-cuda | filecheck %s

// Few very long rows: a block sums each, and each of its threads four neighbours at once. Warps exchange what they have,
// then the results of the warps go through shared memory.
// CHECK:       exchange = shuffle("float32", 16)
// CHECK:       # 1024 threads per block, 128 bytes of shared memory
// CHECK-NEXT:  def reduction_{{.*}}(input: "float32*", output: "float32*"):
// CHECK-NEXT:      partial = shared("float32", 0)()
// CHECK-NEXT:      thread = thread_id()
// CHECK-NEXT:      number = block_id_0()
// CHECK-NEXT:      v, v_1, v_2, v_3 = float32(0.0), float32(0.0), float32(0.0), float32(0.0)
// CHECK-NEXT:      for i in range(thread, int32(25000), int32(1024)):
// CHECK-NEXT:          start = int32(i * 4)
// CHECK-NEXT:          v_4 = load_fragment("float32", range(4), group=4)(input, int32(number * 100000 + start))
// CHECK-NEXT:          v, v_1, v_2, v_3 = v + v_4[0], v_1 + v_4[1], v_2 + v_4[2], v_3 + v_4[3]
// CHECK-NEXT:      v_5 = v + v_1 + (v_2 + v_3)
// CHECK-NEXT:      v_6 = exchange(v_5)
// CHECK-NEXT:      v_7 = v_5 + v_6
// CHECK:           barrier()
// CHECK:           if rem(thread, 32) == 0:
// CHECK-NEXT:          partial[{{.*}}] = {{.*}}
// CHECK-NEXT:      barrier()
// CHECK-NEXT:      {{.*}} = partial[rem(thread, 32)]
// CHECK:           if thread == 0:
// CHECK-NEXT:          output[number] = {{.*}}
func.func @main(%x: tensor<40x100000xf32>) -> tensor<40xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["100000"]>} : (tensor<40x100000xf32>) -> tensor<40xf32> {
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
// CHECK-NEXT:  def reduction_{{.*}}(input: "float32*", output: "float32*"):
// CHECK:           if number < 40:
// CHECK-NEXT:          v = float32(0.0)
// CHECK-NEXT:          for i in range(int32(3)):
// CHECK-NEXT:              v_1 = input[int32(number * 3 + i)]
// CHECK-NEXT:              v = v + v_1
// CHECK-NEXT:          output[number] = v
func.func @main(%x: tensor<40x3xf32>) -> tensor<40xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["3"]>} : (tensor<40x3xf32>) -> tensor<40xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<40xf32>
}

// -----

// Other rows are held in registers: here a block has four rows, and sixteen threads read one with one instruction each.
// CHECK:       # 64 threads per block, 0 bytes of shared memory
// CHECK-NEXT:  def reduction_{{.*}}(input: "float32*", output: "float32*"):
// CHECK-NEXT:      thread = thread_id()
// CHECK-NEXT:      block = block_id_0()
// CHECK-NEXT:      number = int32(block * 4 + div(thread, 16))
// CHECK-NEXT:      i = rem(thread, 16)
// CHECK-NEXT:      start = int32(i * 4)
// CHECK-NEXT:      v = load_fragment("float32", range(4), group=4)(input, int32(number * 64 + start))
// CHECK-NEXT:      v_1 = v[0] + v[1] + (v[2] + v[3])
// CHECK-NEXT:      v_2 = shuffle("float32", 8)(v_1)
// CHECK:           if i == 0:
// CHECK-NEXT:          output[number] = {{.*}}
func.func @main(%x: tensor<40x64xf32>) -> tensor<40xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["64"]>} : (tensor<40x64xf32>) -> tensor<40xf32> {
  ^bb0(%e: f32):
    fused.yield %e : f32
  } {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<40xf32>
}
