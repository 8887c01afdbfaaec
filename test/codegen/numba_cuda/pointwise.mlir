// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda},map-parallel-to-threads" --split-input-file -t numba-cuda | filecheck %s

// One thread takes four neighbours, read and written by one instruction each; what they share is read once.
// CHECK:       # 128 threads per block, 0 bytes of shared memory
// CHECK-NEXT:  def pointwise_{{.*}}(input: "float32*", input_1: "float32*", output: "float32*"):
// CHECK-NEXT:      thread = thread_id()
// CHECK-NEXT:      block = block_id_0()
// CHECK-NEXT:      number = int32(block * 128 + thread)
// CHECK-NEXT:      if number < 16384:
// CHECK-NEXT:          i = div(number, 128)
// CHECK-NEXT:          start = int32(rem(number, 128) * 4)
// CHECK-NEXT:          v = load_fragment("float32", range(4), group=4)(input, int32(i * 512 + start))
// CHECK-NEXT:          v_1 = input_1[i]
// CHECK-NEXT:          v_2 = fragment("float32", 4)(v[0] + v_1, v[1] + v_1, v[2] + v_1, v[3] + v_1)
// CHECK-NEXT:          store_fragment("float32", range(4), group=4)(v_2, output, int32(i * 512 + start))
func.func @main(%x: tensor<128x512xf32>, %b: tensor<128xf32>) -> tensor<128x512xf32> {
  %y = fused.pointwise %x, %b {access = [#fused.access<["d0", "d1"]>, #fused.access<["d0"]>]} : (tensor<128x512xf32>, tensor<128xf32>) -> tensor<128x512xf32> {
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    fused.yield %2 : f32
  }
  func.return %y : tensor<128x512xf32>
}

// -----

// Sizes that are known at run time only are arguments, and indices are 64 bits wide.
// CHECK:       def pointwise_{{.*}}(input: "bfloat16*", output: "float16*", size: "int64"):
// CHECK-NEXT:      thread = int64(thread_id())
// CHECK-NEXT:      block = int64(block_id_0())
// CHECK-NEXT:      number = block * 64 + thread
// CHECK-NEXT:      if number < size:
// CHECK-NEXT:          v = input[number]
// CHECK-NEXT:          output[number] = float16(exp_closely(float32_of_bfloat16(v)))
func.func @main(%x: tensor<?xbf16, #trt.dims<["n"]>>) -> tensor<?xf16, #trt.dims<["n"]>> {
  %y = fused.pointwise %x {access = [#fused.access<["d0"]>]} : (tensor<?xbf16, #trt.dims<["n"]>>) -> tensor<?xf16, #trt.dims<["n"]>> {
  ^bb0(%0: bf16):
    %1 = arith.extf %0 : bf16 to f32
    %2 = math.exp %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    fused.yield %3 : f16
  }
  func.return %y : tensor<?xf16, #trt.dims<["n"]>>
}
