// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cuda}" | filecheck %s

// An operand that lies across the result: a block reads a tile of 64 x 64 along the operand, eight elements at a time, and
// puts them into shared memory as columns of lines 66 apart, so that neither side meets banks twice. Then it goes along the
// result; the other operand and the result move eight elements at a time too.
// CHECK: kernel.func @pointwise_{{[0-9a-f]+}}([[ACROSS:%.*]]: memref<?xf16>, [[ALONG:%.*]]: memref<?xf16>, %output: memref<?xf16>){{.*}}block_size = 256 : i64
// CHECK:   %tile = kernel.shared : memref<4224xf16, "shared">
// CHECK-COUNT-2: kernel.load_fragment [[ACROSS]][{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK-COUNT-2: kernel.store_fragment {{.*}}, %tile[{{.*}}] {offsets = array<i64: 0, 66, 132, 198, 264, 330, 396, 462>}
// CHECK-NEXT: kernel.barrier
// CHECK-COUNT-4: kernel.load_fragment %tile[{{.*}}] {offsets = array<i64: 0, 1>, wide = true}
// CHECK: kernel.load_fragment [[ALONG]][{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK: kernel.store_fragment {{.*}}, %output[{{.*}}] {offsets = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, wide = true}
// CHECK-COUNT-4: kernel.load_fragment %tile
// CHECK: kernel.store_fragment {{.*}}, %output
// CHECK-NOT: kernel.barrier
// CHECK: kernel.return
func.func @main(%x: tensor<4x256x1024xf16>, %z: tensor<4x1024x256xf16>) -> tensor<4x1024x256xf16> {
  %y = fused.pointwise %x, %z {access = [#fused.access<["d0", "d2", "d1"]>, #fused.access<["d0", "d1", "d2"]>]} : (tensor<4x256x1024xf16>, tensor<4x1024x256xf16>) -> tensor<4x1024x256xf16> {
  ^bb0(%0: f16, %1: f16):
    %2 = arith.addf %0, %1 : f16
    fused.yield %2 : f16
  }
  func.return %y : tensor<4x1024x256xf16>
}
