// RUN: rt-opt %s | rt-opt | filecheck %s

// CHECK:      kernel.func @remainder
// CHECK-NEXT:   %a = kernel.remf %v, %w : f32
kernel.func @remainder(%v: f32, %w: f32) {
  %a = kernel.remf %v, %w : f32
  kernel.return
}
