// RUN: rt-opt %s -p "convert-fused-to-kernel{target=cpu},map-parallel-to-workers" --split-input-file -t numba-cpu | filecheck %s

// Workers share the tiles; a weight is packed into panels at build time; rows that fill no tile get a smaller one. The
// epilogue works on vectors.
// CHECK:       def [[K:matmul_[0-9a-f]+]]_finish(element, i, vector, row, column, bias, output, step):
// CHECK-NEXT:      row_1 = row + i
// CHECK-NEXT:      column_1 = column + vector * 16
// CHECK-NEXT:      v = load(bias, column_1, 16)
// CHECK-NEXT:      result = maximum(element + v, float32(0.0))
// CHECK-NEXT:      store(output, row_1 * step + column_1, result)
// CHECK:       def [[K]](params, worker, workers):
// CHECK:           first, last = share(tasks, worker, workers)
// CHECK-NEXT:      for pair in range(unsigned_div(first, blocks), ceil_div(last, blocks)):
// CHECK-NEXT:          column = pair * 32
// CHECK-NEXT:          w_at = pair * panel_size
// CHECK:               for tile in range(low, minimum(high, whole_tiles)):
// CHECK-NEXT:              row = tile * 14
// CHECK-NEXT:              a_at = row * row_step
// CHECK-NEXT:              accumulators = tile_fill(float32(0.0), 14, 2, 16)
// CHECK-NEXT:              for k in range(0, whole_depth, 4):
// CHECK:                       tile_multiply_add(accumulators, a, a_at + k, row_step, 1, panels, w_at + k * 32, 4)
// CHECK:                   tile_for_each(accumulators, [[K]]_finish, (row, column, bias, output, step))
// CHECK-NEXT:          if high > whole_tiles:
// CHECK:                   tile_fill(float32(0.0), 4, 2, 16)
func.func @main(%a: tensor<32x8xf32>, %bias: tensor<64xf32>) -> tensor<32x64xf32> {
  %w = "trt.constant"() {value = dense<2.0> : tensor<8x64xf32>} : () -> tensor<8x64xf32>
  %y = fused.matmul %a, %w, %bias {access = [#fused.access<["d1"]>]} : (tensor<32x8xf32>, tensor<8x64xf32>, tensor<64xf32>) -> tensor<32x64xf32> {
  ^bb0(%acc: f32, %b: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.addf %acc, %b : f32
    %1 = arith.maximumf %0, %zero : f32
    fused.yield %1 : f32
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// A computed operand whose columns lie apart is transposed, panel by panel, in memory of the worker.
// CHECK:       def [[K:matmul_[0-9a-f]+]]_finish(element, row, vector, panels, to):
// CHECK-NEXT:      store(panels, to + row * 64 + vector * 16, element)
// CHECK:       def [[K]](params, worker, workers):
// CHECK:           own = worker_slot(tasks, slots, worker, workers)
// CHECK:           if first < last:
// CHECK-NEXT:          for pair in range(
// CHECK-NEXT:              panel = unsigned_rem(pair, panel_count)
// CHECK-NEXT:              batch = unsigned_div(pair, panel_count)
// CHECK-NEXT:              column = panel * 64
// CHECK-NEXT:              packed_at = own * panel_size
// CHECK:                   for vector in range(4):
// CHECK-NEXT:                  for k in range(0, whole_squares, 16):
// CHECK-NEXT:                      beside = vector * 16
// CHECK-NEXT:                      at = b_at + beside * {{step_[0-9]}} + k
// CHECK-NEXT:                      tile = tile_load_transposed(b, at, {{step_[0-9]}}, 16)
// CHECK-NEXT:                      to = packed_at + k * 64 + beside
// CHECK-NEXT:                      tile_for_each(tile, [[K]]_finish, (panels, to))
// CHECK:                   tile_multiply_add(accumulators, a, a_at + {{k_[0-9]}}, row_step, 1, panels, packed_at + {{k_[0-9]}} * 64, 4)
func.func @main(%a: tensor<2x64x64xf32>, %b: tensor<2x64x64xf32>) -> tensor<2x64x64xf32> {
  %y = fused.matmul %a, %b {transpose_rhs = true} : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<2x64x64xf32>
}
