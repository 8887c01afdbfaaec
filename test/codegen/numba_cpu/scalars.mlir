// RUN: rt-opt %s -t numba-cpu | filecheck %s

// Scalar ops become Python's operators and the words of the library; narrow integers wrap around at their width.
// CHECK:       from mlirt.builder.numba_cpu_intrinsics import (
// CHECK-LABEL: def scalars(params, worker, workers):
// CHECK-NEXT:      x = const_int8_pointer(params[0])
// CHECK-NEXT:      y = int8_pointer(params[1])
// CHECK-NEXT:      slope = float32(bits_as_float64(params[2]))
// CHECK-NEXT:      width = int32(params[3])
// CHECK-NEXT:      n = params[4]
// CHECK-NEXT:      last = n - 1
// CHECK-NEXT:      v = x[last]
// CHECK-NEXT:      wide = int32(int32(uint8(v)) + width)
// CHECK-NEXT:      f = float32(wide) / (slope - (slope - float32(0.1)))
// CHECK-NEXT:      far = logical_not(f <= float32(-1e+30))
// CHECK-NEXT:      r = select(far, f, minimum(-f, slope))
// CHECK-NEXT:      y[0] = int8(int32(r))
kernel.func @scalars(%x: memref<?xi8>, %y: memref<?xi8>, %slope: f32, %width: i32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tenth = arith.constant 0.1 : f32
  %low = arith.constant -1.0e+30 : f32
  %last = arith.subi %n, %c1 : index
  %v = kernel.load %x [%last] strides [1] : memref<?xi8> -> i8
  %0 = arith.extui %v : i8 to i32
  %wide = arith.addi %0, %width : i32
  %1 = arith.sitofp %wide : i32 to f32
  %2 = arith.subf %slope, %tenth : f32
  %3 = arith.subf %slope, %2 : f32
  %f = arith.divf %1, %3 : f32
  %far = arith.cmpf ugt, %f, %low : f32
  %4 = arith.negf %f : f32
  %5 = arith.minimumf %4, %slope : f32
  %r = arith.select %far, %f, %5 : f32
  %6 = arith.fptosi %r : f32 to i32
  %7 = arith.trunci %6 : i32 to i8
  kernel.store %7, %y [%c0] strides [1] : i8, memref<?xi8>
  kernel.return
}

// Structured control flow: carried values are variables.
// CHECK-LABEL: def loops(params, worker, workers):
// CHECK:           a, b = 0, 1
// CHECK-NEXT:      for i in range(n):
// CHECK-NEXT:          sum_1 = a + b
// CHECK-NEXT:          a, b = b, sum_1
// CHECK-NEXT:      half = n
// CHECK-NEXT:      while True:
// CHECK-NEXT:          more = half > 10
// CHECK-NEXT:          j = half
// CHECK-NEXT:          if not more:
// CHECK-NEXT:              break
// CHECK-NEXT:          half = j // 2
// CHECK-NEXT:      smaller = a < b
// CHECK-NEXT:      if smaller:
// CHECK-NEXT:          least = a
// CHECK-NEXT:      else:
// CHECK-NEXT:          least = b
// CHECK-NEXT:      y[least] = j
kernel.func @loops(%y: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %u, %w = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1) -> (index, index) {
    %sum = arith.addi %a, %b : index
    scf.yield %b, %sum : index, index
  }
  %end = scf.while (%half = %n) : (index) -> index {
    %more = arith.cmpi sgt, %half, %c10 : index
    scf.condition(%more) %half : index
  } do {
  ^bb0(%0: index):
    %1 = arith.floordivsi %0, %c2 : index
    scf.yield %1 : index
  }
  %smaller = arith.cmpi slt, %u, %w : index
  %least = scf.if %smaller -> (index) {
    scf.yield %u : index
  } else {
    scf.yield %w : index
  }
  %2 = arith.index_cast %end : index to i64
  kernel.store %2, %y [%least] strides [1] : i64, memref<?xi64>
  kernel.return
}

// Powers with a known multiple of 1/4 as exponent are products of squares and roots.
// CHECK-LABEL: def powers(params, worker, workers):
// CHECK:           y[n] = power_of_quarters(a, 3)
// CHECK-NEXT:      y[n] = power_of_quarters(a, -8)
// CHECK-NEXT:      y[n] = power(a, float32(0.3))
kernel.func @powers(%y: memref<?xf32>, %n: index, %a: f32) {
  %c0 = arith.constant 0.75 : f32
  %c1 = arith.constant -2.0 : f32
  %c2 = arith.constant 0.3 : f32
  %0 = math.powf %a, %c0 : f32
  kernel.store %0, %y [%n] strides [1] : f32, memref<?xf32>
  %1 = math.powf %a, %c1 : f32
  kernel.store %1, %y [%n] strides [1] : f32, memref<?xf32>
  %2 = math.powf %a, %c2 : f32
  kernel.store %2, %y [%n] strides [1] : f32, memref<?xf32>
  kernel.return
}

// Comparisons of comparisons need parentheses: `a < b == c` is a chain to Python.
// CHECK-LABEL: def comparisons(params, worker, workers):
// CHECK:           y[0] = (n < m) == ((m < n) != True)
kernel.func @comparisons(%y: memref<?xi1>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %0 = arith.cmpi slt, %n, %m : index
  %1 = arith.cmpi slt, %m, %n : index
  %2 = arith.cmpi ne, %1, %true : i1
  %3 = arith.cmpi eq, %0, %2 : i1
  kernel.store %3, %y [%c0] strides [1] : i1, memref<?xi1>
  kernel.return
}
