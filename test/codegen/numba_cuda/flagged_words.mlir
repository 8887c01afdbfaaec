// RUN: rt-opt %s -t numba-cuda | filecheck %s

// CHECK:       def exchange(
// CHECK-NEXT:      send_flagged("float16")(h, t, x, i)
// CHECK-NEXT:      a = receive_flagged("float16", 4, 2)(x, t, i, t)
// CHECK-NEXT:      b = receive_flagged("float32", 2, 2)(wide, t, i, t)
// CHECK-NEXT:      c = dot_product(4)(b, b)
kernel.func @exchange(%x: memref<?xi32>, %wide: memref<?xi64>, %i: index, %t: index, %h: f16) attributes {block_size = 32 : i64, cooperative} {
  kernel.send_flagged %h flag %t, %x[%i] : f16, memref<?xi32>
  %a = kernel.receive_flagged %x[%i, %t] flag %t {count = 4 : i64} : memref<?xi32> -> vector<8xf16>
  %b = kernel.receive_flagged %wide[%i, %t] flag %t {count = 2 : i64} : memref<?xi64> -> vector<4xf32>
  %c = kernel.dot_product %b, %b : vector<4xf32>, vector<4xf32>
  kernel.return
}
