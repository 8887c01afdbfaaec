// RUN: rt-opt %s -t numba-cpu | filecheck %s

// A loop over lanes is written for whole vectors, then for the rest of the row with masks.
// CHECK-LABEL: def scaled(params, worker, workers):
// CHECK-NEXT:      x = const_float32_pointer(params[0])
// CHECK-NEXT:      factor = const_float32_pointer(params[1])
// CHECK-NEXT:      y = float32_pointer(params[2])
// CHECK-NEXT:      n = params[3]
// CHECK-NEXT:      m = params[4]
// CHECK-NEXT:      first, last = share(n, worker, workers)
// CHECK-NEXT:      for i in range(first, last):
// CHECK-NEXT:          for j in range(0, m - 15, 16):
// CHECK-NEXT:              v = load(x, i * m + j, 16)
// CHECK-NEXT:              f = factor[i]
// CHECK-NEXT:              store(y, i * m + j, exp(v * f))
// CHECK-NEXT:          rest = m % 16
// CHECK-NEXT:          if rest > 0:
// CHECK-NEXT:              j = m - rest
// CHECK-NEXT:              v = load_first(x, i * m + j, 16, rest)
// CHECK-NEXT:              f = factor[i]
// CHECK-NEXT:              store_first(y, i * m + j, exp(v * f), rest)
kernel.func @scaled(%x: memref<?xf32>, %factor: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  kernel.parallel (%n) attributes {workers} {
  ^bb0(%i: index):
    kernel.parallel (%m) attributes {lanes = 16 : i64} {
    ^bb0(%j: index):
      %v = kernel.load %x [%i, %j] strides [%m, 1] : memref<?xf32> -> f32
      %f = kernel.load %factor [%i, %j] strides [1, 0] : memref<?xf32> -> f32
      %0 = arith.mulf %v, %f : f32
      %1 = math.exp %0 : f32
      kernel.store %1, %y [%i, %j] strides [%m, 1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// Indices of a shared box count along with the task.
// CHECK-LABEL: def box(params, worker, workers):
// CHECK:           first, last = share(n * m, worker, workers)
// CHECK-NEXT:      i, j = first // m, first % m
// CHECK-NEXT:      for _ in range(first, last):
// CHECK-NEXT:          y[i * m + j] = 1.5
// CHECK-NEXT:          j += 1
// CHECK-NEXT:          if j == m:
// CHECK-NEXT:              j = 0
// CHECK-NEXT:              i += 1
kernel.func @box(%y: memref<?xf64>, %n: index, %m: index) {
  %c = arith.constant 1.5 : f64
  kernel.parallel (%n, %m) attributes {workers} {
  ^bb0(%i: index, %j: index):
    kernel.store %c, %y [%i, %j] strides [%m, 1] : f64, memref<?xf64>
    kernel.yield
  }
  kernel.return
}

// Each lane reduces what falls to it, four vectors at once where there are as many; lanes beyond the end count as the
// neutral element.
// CHECK-LABEL: def largest(params, worker, workers):
// CHECK:               partial = splat(int32(-2147483648), 64)
// CHECK-NEXT:          partial_1 = splat(int32(-2147483648), 16)
// CHECK-NEXT:          for j in range(0, n - 63, 64):
// CHECK-NEXT:              v = load(x, j, 64)
// CHECK-NEXT:              partial = maximum(partial, v)
// CHECK-NEXT:          for j in range(n // 64 * 64, n - 15, 16):
// CHECK-NEXT:              v = load(x, j, 16)
// CHECK-NEXT:              partial_1 = maximum(partial_1, v)
// CHECK-NEXT:          rest = n % 16
// CHECK-NEXT:          if rest > 0:
// CHECK-NEXT:              j = n - rest
// CHECK-NEXT:              v = load_first(x, j, 16, rest)
// CHECK-NEXT:              partial_1 = maximum(partial_1, keep_first(v, rest, int32(-2147483648)))
// CHECK-NEXT:          most = maximum(int32(7), maximum_of_lanes(maximum(partial_1, fold_maximum(partial, 16))))
// CHECK-NEXT:          y[i] = most
kernel.func @largest(%x: memref<?xi32>, %y: memref<?xi32>, %n: index) {
  %one = arith.constant 1 : index
  %c = arith.constant 7 : i32
  kernel.parallel (%one) attributes {workers} {
  ^bb0(%i: index):
    %most = kernel.reduce max (%n) init %c attributes {lanes = 16 : i64} : i32 -> i32 {
    ^bb0(%j: index):
      %v = kernel.load %x [%j] strides [1] : memref<?xi32> -> i32
      kernel.yield %v : i32
    }
    kernel.store %most, %y [%i] strides [1] : i32, memref<?xi32>
    kernel.yield
  }
  kernel.return
}

// A reduction inside of lanes has a vector as its total; the index of a lane is a vector too.
// CHECK-LABEL: def columns(params, worker, workers):
// CHECK:               for j in range(0, m - 7, 8):
// CHECK-NEXT:              total = splat(float32(0.0), 8)
// CHECK-NEXT:              for k in range(n):
// CHECK-NEXT:                  v = gather(x, k + j * m, m, 8)
// CHECK-NEXT:                  total = total + v
// CHECK-NEXT:              inside = lane_indices(j, 8) < n
// CHECK-NEXT:              kept = select(inside, total, float32(0.0))
// CHECK-NEXT:              store(y, j, kept)
kernel.func @columns(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%one) attributes {workers} {
  ^bb0(%i: index):
    kernel.parallel (%m) attributes {lanes = 8 : i64} {
    ^bb0(%j: index):
      %total = kernel.reduce add (%n) init %zero : f32 -> f32 {
      ^bb0(%k: index):
        %v = kernel.load %x [%k, %j] strides [1, %m] : memref<?xf32> -> f32
        kernel.yield %v : f32
      }
      %inside = arith.cmpi slt, %j, %n : index
      %kept = arith.select %inside, %total, %zero : f32
      kernel.store %kept, %y [%j] strides [1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// Columns of a matrix: four vectors of them at once, then one, then the rest.
// CHECK-LABEL: def sums_of_columns(params, worker, workers):
// CHECK:               for j in range(0, m - 63, 64):
// CHECK-NEXT:              total = splat(float32(0.0), 64)
// CHECK-NEXT:              for k in range(n):
// CHECK-NEXT:                  v = load(x, k * m + j, 64)
// CHECK-NEXT:                  total = total + v
// CHECK-NEXT:              store(y, j, total)
// CHECK-NEXT:          for j in range(m // 64 * 64, m - 15, 16):
// CHECK-NEXT:              total = splat(float32(0.0), 16)
// CHECK:               rest = m % 16
kernel.func @sums_of_columns(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  kernel.parallel (%one) attributes {workers} {
  ^bb0(%i: index):
    kernel.parallel (%m) attributes {lanes = 16 : i64} {
    ^bb0(%j: index):
      %total = kernel.reduce add (%n) init %zero : f32 -> f32 {
      ^bb0(%k: index):
        %v = kernel.load %x [%k, %j] strides [%m, 1] : memref<?xf32> -> f32
        kernel.yield %v : f32
      }
      kernel.store %total, %y [%j] strides [1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// Lanes that lie backwards, or a few elements apart by a number that is known, are picked out of whole vectors.
// CHECK-LABEL: def backwards(params, worker, workers):
// CHECK:               for j in range(0, n - 7, 8):
// CHECK-NEXT:              v = load_steps(x, j * -1, -1, 8)
// CHECK-NEXT:              w = load_steps(x, j * 2, 2, 8)
// CHECK-NEXT:              s = v + w
// CHECK:                   v = load_steps_first(x, j * -1, -1, 8, rest)
// CHECK-NEXT:              w = load_steps_first(x, j * 2, 2, 8, rest)
kernel.func @backwards(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %one = arith.constant 1 : index
  kernel.parallel (%one) attributes {workers} {
  ^bb0(%i: index):
    kernel.parallel (%n) attributes {lanes = 8 : i64} {
    ^bb0(%j: index):
      %v = kernel.load %x [%j] strides [-1] : memref<?xf32> -> f32
      %w = kernel.load %x [%j] strides [2] : memref<?xf32> -> f32
      %s = arith.addf %v, %w : f32
      kernel.store %s, %y [%j] strides [1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// Lanes that load from places of their own do so at once.
// CHECK-LABEL: def scattered(params, worker, workers):
// CHECK:               for j in range(0, n - 7, 8):
// CHECK-NEXT:              at = load(t, j, 8)
// CHECK-NEXT:              place = int64(at)
// CHECK-NEXT:              v = load_at(x, place * m)
// CHECK-NEXT:              store(y, j, v)
// CHECK:                   v = load_at_first(x, place * m, rest)
kernel.func @scattered(%x: memref<?xf32>, %t: memref<?xi32>, %y: memref<?xf32>, %n: index, %m: index) {
  %one = arith.constant 1 : index
  kernel.parallel (%one) attributes {workers} {
  ^bb0(%i: index):
    kernel.parallel (%n) attributes {lanes = 8 : i64} {
    ^bb0(%j: index):
      %at = kernel.load %t [%j] strides [1] : memref<?xi32> -> i32
      %place = arith.index_cast %at : i32 to index
      %v = kernel.load %x [%place] strides [%m] : memref<?xf32> -> f32
      kernel.store %v, %y [%j] strides [1] : f32, memref<?xf32>
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}

// What is combined has parentheses where Python would read it otherwise: `|` binds more tightly than `>=`.
// CHECK-LABEL: def any_of_many(
// CHECK: partial = partial | (v >= 1)
// CHECK: partial_1 = partial_1 | (v >= 1)
// CHECK: partial_1 = partial_1 | keep_first(v >= 1, rest, False)
kernel.func @any_of_many(%x: memref<?xi64>, %y: memref<?xi1>, %n: index) attributes {target = "cpu"} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %none = arith.constant false
  %r = kernel.reduce or(%n) init %none attributes {lanes = 8 : i64} : i1 -> i1 {
  ^bb0(%i: index):
    %v = kernel.load %x[%i] strides [1] : memref<?xi64> -> i64
    %0 = arith.cmpi sge, %v, %one : i64
    kernel.yield %0 : i1
  }
  kernel.store %r, %y[%zero] strides [1] : i1, memref<?xi1>
  kernel.return
}

// A store rounds to the halves that it writes: what is rounded for stores alone is not rounded before.
// CHECK-LABEL: def rounded(params, worker, workers):
// CHECK:               store(y, j, v * float32(2.0))
// CHECK-NEXT:          r = float16(v)
// CHECK-NEXT:          store(y, j, r)
// CHECK-NEXT:          w = float32(r)
// CHECK-NEXT:          store(z, j, w)
kernel.func @rounded(%x: memref<?xf32>, %y: memref<?xf16>, %z: memref<?xf32>) {
  %n = arith.constant 64 : index
  kernel.parallel (%n) attributes {lanes = 16 : i64} {
  ^bb0(%j: index):
    %v = kernel.load %x [%j] strides [1] : memref<?xf32> -> f32
    %two = arith.constant 2.0 : f32
    %0 = arith.mulf %v, %two : f32
    %1 = arith.truncf %0 : f32 to f16
    kernel.store %1, %y [%j] strides [1] : f16, memref<?xf16>
    %r = arith.truncf %v : f32 to f16
    kernel.store %r, %y [%j] strides [1] : f16, memref<?xf16>
    %w = arith.extf %r : f16 to f32
    kernel.store %w, %z [%j] strides [1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}
