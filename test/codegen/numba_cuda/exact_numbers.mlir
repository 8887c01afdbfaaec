// RUN: rt-opt %s -t numba-cuda | filecheck %s

// Devices give the least number of 64 bits for not-a-number, which is 0; a power is not quite a square root.
// CHECK: a = remainder(v, w)
// CHECK: b = power_of_half(a)
// CHECK: c = int64(nan_as_zero(b))
// CHECK: d = int32(b)
// CHECK: e = int32(nan_as_zero(x))
kernel.func @exact_numbers(%p: memref<?xi64>, %q: memref<?xi32>, %v: f32, %w: f32, %x: f64, %i: index) attributes {block_size = 32 : i64} {
  %a = kernel.remf %v, %w : f32
  %half = arith.constant 0.5 : f32
  %b = math.powf %a, %half : f32
  %c = arith.fptosi %b : f32 to i64
  %d = arith.fptosi %b : f32 to i32
  %e = arith.fptosi %x : f64 to i32
  kernel.store %c, %p [%i] strides [1] : i64, memref<?xi64>
  kernel.store %d, %q [%i] strides [1] : i32, memref<?xi32>
  kernel.store %e, %q [%i] strides [1] : i32, memref<?xi32>
  kernel.return
}
