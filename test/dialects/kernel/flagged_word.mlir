// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK:      kernel.func @exchange(%x: memref<?xi32>, %wide: memref<?xi64>, %i: index, %t: index, %h: f16, %s: f32) attributes {cooperative} {
// CHECK-NEXT:   kernel.send_flagged %h flag %t, %x[%i] : f16, memref<?xi32>
// CHECK-NEXT:   kernel.send_flagged %s flag %t, %wide[%i] : f32, memref<?xi64>
// CHECK-NEXT:   %a = kernel.receive_flagged %x[%i, %i] flag %t {count = 4 : i64} : memref<?xi32> -> vector<8xf16>
// CHECK-NEXT:   %b = kernel.receive_flagged %wide[%i, %i] flag %t {count = 2 : i64} : memref<?xi64> -> vector<4xf32>
// CHECK-NEXT:   %c = kernel.dot_product %b, %b : vector<4xf32>, vector<4xf32>
kernel.func @exchange(%x: memref<?xi32>, %wide: memref<?xi64>, %i: index, %t: index, %h: f16, %s: f32) attributes {cooperative} {
  kernel.send_flagged %h flag %t, %x[%i] : f16, memref<?xi32>
  kernel.send_flagged %s flag %t, %wide[%i] : f32, memref<?xi64>
  %a = kernel.receive_flagged %x[%i, %i] flag %t {count = 4 : i64} : memref<?xi32> -> vector<8xf16>
  %b = kernel.receive_flagged %wide[%i, %i] flag %t {count = 2 : i64} : memref<?xi64> -> vector<4xf32>
  %c = kernel.dot_product %b, %b : vector<4xf32>, vector<4xf32>
  kernel.return
}
