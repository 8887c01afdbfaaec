// RUN: rt-opt %s -t numba-cpu | filecheck %s

// What is done with the elements of a tile becomes a function of one vector; it gets what it uses from outside.
// CHECK:       @inlined
// CHECK-NEXT:  def product_finish(v, i, j, bias, y, row, stride, rows, valid):
// CHECK-NEXT:      count = valid - j * 16
// CHECK-NEXT:      if i < rows and count > 0:
// CHECK-NEXT:          b = load_first(bias, j * 16, 16, count)
// CHECK-NEXT:          store_first(y, row * stride + i * stride + j * 16, maximum(v + b, float32(0.0)), count)
// CHECK-LABEL: def product(params, worker, workers):
// CHECK:           first, last = share(n, worker, workers)
// CHECK-NEXT:      for task in range(first, last):
// CHECK-NEXT:          t = tile_fill(float32(0.0), 6, 4, 16)
// CHECK-NEXT:          row = task * 6
// CHECK-NEXT:          for at in range(0, k, 2):
// CHECK-NEXT:              t1 = tile_multiply_add(t, x, row * k + at, k, 1, w, at * 64, 2)
// CHECK-NEXT:              t = t1
// CHECK-NEXT:          tile_for_each(t, product_finish, (bias, y, row, stride, rows, valid))
kernel.func @product(%x: memref<?xf32>, %w: memref<?xf32>, %bias: memref<?xf32>, %y: memref<?xf32>, %n: index, %k: index, %stride: index, %rows: index, %valid: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %first, %last = kernel.worker_share %n
  scf.for %task = %first to %last step %c1 {
    %t = kernel.tile_fill %zero : f32 -> vector<6x4x16xf32>
    %row = arith.muli %task, %c6 : index
    %sum = scf.for %at = %c0 to %k step %c2 iter_args(%acc = %t) -> (vector<6x4x16xf32>) {
      %0 = arith.muli %row, %k : index
      %1 = arith.addi %0, %at : index
      %2 = arith.muli %at, %c64 : index
      %t1 = kernel.tile_multiply_add %acc, %x[%1] rows %k step %c1, %w[%2] {depth = 2 : i64} : vector<6x4x16xf32>, memref<?xf32>, memref<?xf32> -> vector<6x4x16xf32>
      scf.yield %t1 : vector<6x4x16xf32>
    }
    kernel.tile_for_each %sum rows %rows valid %valid : vector<6x4x16xf32> {
    ^bb0(%v: f32, %i: index, %j: index, %lane: index):
      %b = kernel.load %bias [%j, %lane] strides [16, 1] : memref<?xf32> -> f32
      %3 = arith.addf %v, %b : f32
      %4 = arith.maximumf %3, %zero : f32
      kernel.store %4, %y [%row, %i, %j, %lane] strides [%stride, %stride, 16, 1] : f32, memref<?xf32>
      kernel.yield
    }
  }
  kernel.return
}

// Memory that a worker has for itself.
// CHECK-LABEL: def own(params, worker, workers):
// CHECK:           slot = worker_slot(n, slots, worker, workers)
// CHECK-NEXT:      y[slot * size] = float32(0.0)
kernel.func @own(%y: memref<?xf32>, %n: index, %slots: index, %size: index) {
  %zero = arith.constant 0.0 : f32
  %slot = kernel.worker_slot %n, %slots
  kernel.store %zero, %y [%slot] strides [%size] : f32, memref<?xf32>
  kernel.return
}

// Windows: products lane by lane, and extremes.
// CHECK-LABEL: def window(params, worker, workers):
// CHECK:           t = tile_fill(float32(-inf), 4, 1, 8)
// CHECK-NEXT:      accumulators = tile_multiply_add_lanes(t, x, 3, 16, w, 8)
// CHECK-NEXT:      most = tile_maximum(accumulators, x, 3, 16)
// CHECK-NEXT:      tile_for_each(most, window_finish, (y,))
kernel.func @window(%x: memref<?xf32>, %w: memref<?xf32>, %y: memref<?xf32>) {
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %low = arith.constant 0xff800000 : f32
  %t = kernel.tile_fill %low : f32 -> vector<4x1x8xf32>
  %accumulators = kernel.tile_multiply_add_lanes %t, %x[%c3] rows %c16, %w[%c8] : vector<4x1x8xf32>, memref<?xf32>, memref<?xf32> -> vector<4x1x8xf32>
  %most = kernel.tile_combine max %accumulators, %x[%c3] rows %c16 : vector<4x1x8xf32>, memref<?xf32> -> vector<4x1x8xf32>
  kernel.tile_for_each %most : vector<4x1x8xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    kernel.store %v, %y [%i, %lane] strides [8, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// Squares of vectors and their transforms.
// CHECK-LABEL: def patches(params, worker, workers):
// CHECK:           t = tile_load_patch_first(x, 3, n, 16, rows, columns, 4, 4, 16)
// CHECK-NEXT:      u = tile_load_patch(x, 3, n, 16, 4, 4, 16)
// CHECK-NEXT:      v = tile_transform(t, "1 0 -1 0, 0 1 1 0")
// CHECK-NEXT:      tile_for_each(v, patches_finish, (y,))
// CHECK-NEXT:      tile_for_each(u, patches_finish_1, (y,))
kernel.func @patches(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %rows: index, %columns: index) {
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %t = kernel.tile_load_patch %x[%c3] rows %n columns %c16 only %rows by %columns : memref<?xf32> -> vector<4x4x16xf32>
  %u = kernel.tile_load_patch %x[%c3] rows %n columns %c16 : memref<?xf32> -> vector<4x4x16xf32>
  %v = kernel.tile_transform %t {matrix = array<f64: 1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 1.0, 0.0>} : vector<4x4x16xf32> -> vector<2x2x16xf32>
  kernel.tile_for_each %v : vector<2x2x16xf32> {
  ^bb0(%e: f32, %i: index, %j: index, %lane: index):
    kernel.store %e, %y [%i, %j, %lane] strides [32, 16, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.tile_for_each %u : vector<4x4x16xf32> {
  ^bb0(%e: f32, %i: index, %j: index, %lane: index):
    kernel.store %e, %y [%i, %j, %lane] strides [64, 16, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// Int8 products: four in each lane, of which the last may be fewer. A float between the limits of a type is one word, and
// a product is rounded before anything is added to it.
// CHECK-LABEL: def bytes_finish(v, i, j, a, y):
// CHECK-NEXT:      v_1 = bits_as_int8(saturated_uint8(rounded_product(float32(v), a) + float32(3.0)))
// CHECK-NEXT:      store(y, 0, bits_as_uint8(v_1))
// CHECK-LABEL: def bytes(params, worker, workers):
// CHECK:           t = tile_fill(int32(0), 4, 1, 8)
// CHECK-NEXT:      accumulators = tile_dot_add(t, x, 3, 16, w, 8, 2, 3)
// CHECK-NEXT:      some = tile_dot_add_first(accumulators, x, 3, 16, w, 8, 1, 4, 2)
kernel.func @bytes(%x: memref<?xui8>, %w: memref<?xi8>, %y: memref<?xui8>, %a: f32) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i32
  %three = arith.constant 3.0 : f32
  %low = arith.constant 0.0 : f32
  %high = arith.constant 255.0 : f32
  %t = kernel.tile_fill %zero : i32 -> vector<4x1x8xi32>
  %accumulators = kernel.tile_dot_add %t, %x[%c3] rows %c16, %w[%c8] {depth = 2 : i64, last = 3 : i64} : vector<4x1x8xi32>, memref<?xui8>, memref<?xi8> -> vector<4x1x8xi32>
  %some = kernel.tile_dot_add %accumulators, %x[%c3] rows %c16 first %c2, %w[%c8] {depth = 1 : i64} : vector<4x1x8xi32>, memref<?xui8>, memref<?xi8> -> vector<4x1x8xi32>
  kernel.tile_for_each %some : vector<4x1x8xi32> {
  ^bb0(%v: i32, %i: index, %j: index, %lane: index):
    %0 = arith.sitofp %v : i32 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.addf %1, %three : f32
    %3 = arith.maximumf %2, %low : f32
    %clamped = arith.minimumf %3, %high : f32
    %4 = arith.fptosi %clamped : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    %6 = arith.bitcast %5 : i8 to ui8
    kernel.store %6, %y [%lane] strides [1] : ui8, memref<?xui8>
    kernel.yield
  }
  kernel.return
}

// The matrix unit: registers are laid out once, and sums come back by way of the worker's own memory.
// CHECK-LABEL: def matrices(params, worker, workers):
// CHECK:           m = worker_memory_int32(896)
// CHECK-NEXT:      amx_begin(2, 2, 14, 48)
// CHECK-NEXT:      amx_clear(4)
// CHECK-NEXT:      amx_dot_add(x, n, 16, w, 8, 2, 2, 14)
// CHECK-NEXT:      amx_store(m, 2, 2, 14)
// CHECK-NEXT:      t = tile_load(m, 3, 32, 7, 2, 16)
// CHECK:           amx_end()
kernel.func @matrices(%x: memref<?xui8>, %w: memref<?xi8>, %y: memref<?xi32>, %n: index) {
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %m = kernel.worker_memory {elements = 896 : i64} : memref<?xi32>
  kernel.amx_begin {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64, depth = 48 : i64}
  kernel.amx_clear {count = 4 : i64}
  kernel.amx_dot_add %x[%n] step %c16, %w[%c8] {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64} : memref<?xui8>, memref<?xi8>
  kernel.amx_store %m {rows = 2 : i64, columns = 2 : i64, pixels = 14 : i64} : memref<?xi32>
  %t = kernel.tile_load %m[%c3] rows %c32 : memref<?xi32> -> vector<7x2x16xi32>
  kernel.tile_for_each %t : vector<7x2x16xi32> {
  ^bb0(%v: i32, %i: index, %j: index, %lane: index):
    kernel.store %v, %y [%i, %lane] strides [32, 1] : i32, memref<?xi32>
    kernel.yield
  }
  kernel.amx_end
  kernel.return
}

// What is made of the elements of a tile is a tile again, of which windows are combined.
// CHECK:       def pooled_value(v, i, j, bias, valid):
// CHECK-NEXT:      count = valid - j * 8
// CHECK-NEXT:      if count > 0:
// CHECK-NEXT:          b = load_first(bias, j * 8, 8, count)
// CHECK-NEXT:          s = v + b
// CHECK-NEXT:          return s
// CHECK-NEXT:      return v
// CHECK-LABEL: def pooled(params, worker, workers):
// CHECK:           t = tile_fill(float32(0.0), 4, 2, 8)
// CHECK-NEXT:      values = tile_map(t, pooled_value, (bias, valid))
// CHECK-NEXT:      best = tile_fill(float32(-inf), 2, 2, 8)
// CHECK-NEXT:      most = tile_pool(values, best, "max", 2, 1)
// CHECK-NEXT:      tile_for_each(most, pooled_finish_1, (y,))
kernel.func @pooled(%bias: memref<?xf32>, %y: memref<?xf32>, %valid: index) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xff800000 : f32
  %t = kernel.tile_fill %zero : f32 -> vector<4x2x8xf32>
  %values = kernel.tile_map %t valid %valid : vector<4x2x8xf32> -> vector<4x2x8xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    %b = kernel.load %bias [%j, %lane] strides [8, 1] : memref<?xf32> -> f32
    %s = arith.addf %v, %b : f32
    kernel.yield %s : f32
  }
  %best = kernel.tile_fill %low : f32 -> vector<2x2x8xf32>
  %most = kernel.tile_pool max %values into %best {window = array<i64: 2, 1>} : vector<4x2x8xf32>, vector<2x2x8xf32> -> vector<2x2x8xf32>
  kernel.tile_for_each %most : vector<2x2x8xf32> {
  ^bb0(%v: f32, %i: index, %j: index, %lane: index):
    kernel.store %v, %y [%i, %j, %lane] strides [16, 8, 1] : f32, memref<?xf32>
    kernel.yield
  }
  kernel.return
}

// Rows of int8 that lie behind each other are stored four at a time; what is the same for each of them is read once.
// CHECK-LABEL: def rows_finish(v, i, j, bias, y, n):
// CHECK-NEXT:      b = load(bias, j * 4, 4)
// CHECK-NEXT:      v_1 = saturated_int8(float32(int32(v + b)))
// CHECK-NEXT:      store(y, n * 4 + i * 4, v_1)
// CHECK-LABEL: def rows_finish_1(v, i, j, bias, y, n):
// CHECK-NEXT:      b = load_repeated(bias, j * 4, 4, 4)
// CHECK-NEXT:      v_1 = saturated_int8(float32(int32(v + b)))
// CHECK-NEXT:      store(y, n * 4 + i * 4, v_1)
// CHECK-LABEL: def rows(params, worker, workers):
// CHECK:           tile_for_each_rows(t, rows_finish, rows_finish_1, (bias, y, n), 6)
kernel.func @rows(%bias: memref<?xi32>, %y: memref<?xi8>, %n: index) {
  %zero = arith.constant 0 : i32
  %low = arith.constant -128.0 : f32
  %high = arith.constant 127.0 : f32
  %t = kernel.tile_fill %zero : i32 -> vector<6x1x4xi32>
  kernel.tile_for_each %t : vector<6x1x4xi32> {
  ^bb0(%v: i32, %i: index, %j: index, %lane: index):
    %b = kernel.load %bias[%j, %lane] strides [4, 1] : memref<?xi32> -> i32
    %0 = arith.addi %v, %b : i32
    %1 = arith.sitofp %0 : i32 to f32
    %2 = arith.maximumf %1, %low : f32
    %3 = arith.minimumf %2, %high : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    kernel.store %5, %y[%n, %i, %lane] strides [4, 4, 1] : i8, memref<?xi8>
    kernel.yield
  }
  kernel.return
}

// Words of int8 that lie apart: sixteen at a time, eight, and what is left of a short row.
// CHECK-LABEL: def words(params, worker, workers):
// CHECK:           if n >= 16:
// CHECK-NEXT:          for i in range(0, n - 15, 16):
// CHECK-NEXT:              word = load_bytes(x, i, 16)
// CHECK-NEXT:              v = byte_of(word, 0)
// CHECK-NEXT:              store(y, i, v)
// CHECK-NEXT:              v_1 = byte_of(word, 3)
// CHECK-NEXT:              store(z, i, v_1)
// CHECK-NEXT:          if n % 16 > 0:
// CHECK-NEXT:              i = n - 16
// CHECK:           elif n >= 8:
// CHECK:           else:
// CHECK-NEXT:          for i in range(0, n - 3, 4):
// CHECK-NEXT:              word = load(x, i, 4)
kernel.func @words(%x: memref<?xi32>, %y: memref<?xi8>, %z: memref<?xi8>, %n: index) {
  %shift = arith.constant 24 : i32
  kernel.parallel(%n) attributes {lanes = 4 : i64} {
  ^bb0(%i: index):
    %word = kernel.load %x[%i] strides [1] : memref<?xi32> -> i32
    %0 = arith.trunci %word : i32 to i8
    kernel.store %0, %y[%i] strides [1] : i8, memref<?xi8>
    %1 = arith.shrsi %word, %shift : i32
    %2 = arith.trunci %1 : i32 to i8
    kernel.store %2, %z[%i] strides [1] : i8, memref<?xi8>
    kernel.yield
  }
  kernel.return
}
