// RUN: rt-opt %s --split-input-file -p fuse-convolution-pooling --print-debuginfo | filecheck %s
// RUN: rt-opt %s --split-input-file -p fuse-convolution-pooling{in_blocks=true} | filecheck %s --check-prefix=BLOCKS

// CHECK-LABEL: @largest
// CHECK-NEXT: [[Y:%.*]] = fused.convolution %x, %w, %b {{.*}}pooling = #fused.pooling<max [2, 2]>{{.*}} -> tensor<1x4x4x3xf32> {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: fused.yield
// CHECK-NEXT: } loc(fused["conv", "pool"])
// CHECK-NEXT: func.return [[Y]]
// BLOCKS-LABEL: @largest
// BLOCKS: fused.convolution
// BLOCKS: fused.window
func.func @largest(%x: tensor<1x3x8x7xf32>, %w: tensor<4x3x1x1xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x3xf32> {
  %c = fused.convolution %x, %w, %b {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d1"]>]}
    : (tensor<1x3x8x7xf32>, tensor<4x3x1x1xf32>, tensor<4xf32>) -> tensor<1x4x8x7xf32> {
  ^bb0(%acc: f32, %bias: f32):
    %s = arith.addf %acc, %bias : f32
    fused.yield %s : f32
  } loc("conv")
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x7xf32>) -> tensor<1x4x4x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  } loc("pool")
  func.return %y : tensor<1x4x4x3xf32>
}

// -----

// Means, of rows whose number only a run tells, in blocks of channels.
// CHECK-LABEL: @mean_in_blocks
// CHECK: fused.convolution {{.*}}pooling = #fused.pooling<average [4, 1]>
// CHECK-NOT: fused.window
// BLOCKS-LABEL: @mean_in_blocks
// BLOCKS: pooling = #fused.pooling<average [4, 1]>
func.func @mean_in_blocks(%x: tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h", "7", "16"], channels = "16">>, %w: tensor<16x16x1x1xf32>)
    -> tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h//4", "7", "16"], channels = "16">> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>}
    : (tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h", "7", "16"], channels = "16">>, tensor<16x16x1x1xf32>)
    -> tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h", "7", "16"], channels = "16">> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window average %c {window = array<i64: 4, 1>, stride = array<i64: 4, 1>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>}
    : (tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h", "7", "16"], channels = "16">>)
    -> tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h//4", "7", "16"], channels = "16">> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x1x?x7x16xf32, #trt.dims<["1", "1", "h//4", "7", "16"], channels = "16">>
}

// -----

// The result of the convolution is an output too.
// CHECK-LABEL: @two_readers
// CHECK: fused.convolution
// CHECK: fused.window
func.func @two_readers(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>) {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %c, %y : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>
}

// -----

// Windows that overlap want sums of several tiles.
// CHECK-LABEL: @overlapping
// CHECK: fused.convolution
// CHECK: fused.window
func.func @overlapping(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x3x3xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 3, 3>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x3x3xf32>
}

// -----

// Tiles of 4 x 4 pixels do not consist of windows of 3.
// CHECK-LABEL: @three
// CHECK: fused.convolution
// CHECK: fused.window
func.func @three(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x2x2xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 3, 3>, stride = array<i64: 3, 3>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x2x2xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x2x2xf32>
}

// -----

// Windows that reach beyond the image.
// CHECK-LABEL: @padded
// CHECK: fused.convolution
// CHECK: fused.window
func.func @padded(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x5x5xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["1", "1"]>, post_padding = #trt.dims<["1", "1"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x5x5xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x5x5xf32>
}

// -----

// The last window is not whole.
// CHECK-LABEL: @rounded_up
// CHECK: fused.convolution
// CHECK: fused.window
func.func @rounded_up(%x: tensor<1x3x7x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x7x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x7x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x7x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// Windows with gaps.
// CHECK-LABEL: @spread
// CHECK: fused.convolution
// CHECK: fused.window
func.func @spread(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x3x3xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 2, 2>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x3x3xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x3x3xf32>
}

// -----

// The rows and pixels of a dilated convolution are computed in another order.
// CHECK-LABEL: @dilated
// CHECK: fused.convolution
// CHECK: fused.window
func.func @dilated(%x: tensor<1x3x12x12xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 2, 2>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x12x12xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// What is added differs from pixel to pixel.
// CHECK-LABEL: @residual
// CHECK: fused.convolution
// CHECK: fused.window
func.func @residual(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %r: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w, %r {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32, %res: f32):
    %s = arith.addf %acc, %res : f32
    fused.yield %s : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// So does what is made of it here.
// CHECK-LABEL: @place
// CHECK: fused.convolution
// CHECK: fused.window
func.func @place(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    %i = fused.index {dim = 3 : i64} : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.addf %acc, %f : f32
    fused.yield %s : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// The pooling has an end of its own.
// CHECK-LABEL: @more_behind
// CHECK: fused.convolution
// CHECK: fused.window
func.func @more_behind(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    %n = arith.negf %acc : f32
    fused.yield %n : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// Sums in single precision, and results in half precision.
// CHECK-LABEL: @precisions
// CHECK: fused.convolution
// CHECK: fused.window
func.func @precisions(%x: tensor<1x3x8x8xf16>, %w: tensor<4x3x1x1xf16>) -> tensor<1x4x4x4xf16> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xf16>, tensor<4x3x1x1xf16>) -> tensor<1x4x8x8xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf16>) -> tensor<1x4x4x4xf16> {
  ^bb0(%acc: f32):
    %h = arith.truncf %acc : f32 to f16
    fused.yield %h : f16
  }
  func.return %y : tensor<1x4x4x4xf16>
}

// -----

// The largest of int8.
// CHECK-LABEL: @bytes
// CHECK: fused.convolution
// CHECK: fused.window
func.func @bytes(%x: tensor<1x3x8x8xi8>, %w: tensor<4x3x1x1xi8>) -> tensor<1x4x4x4xi8> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x8x8xi8>, tensor<4x3x1x1xi8>) -> tensor<1x4x8x8xi8> {
  ^bb0(%acc: i32):
    %h = arith.trunci %acc : i32 to i8
    fused.yield %h : i8
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xi8>) -> tensor<1x4x4x4xi8> {
  ^bb0(%acc: i32):
    %h = arith.trunci %acc : i32 to i8
    fused.yield %h : i8
  }
  func.return %y : tensor<1x4x4x4xi8>
}

// -----

// A deconvolution.
// CHECK-LABEL: @deconvolution
// CHECK: fused.convolution
// CHECK: fused.window
func.func @deconvolution(%x: tensor<1x3x8x8xf32>, %w: tensor<3x4x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>, transposed = true} : (tensor<1x3x8x8xf32>, tensor<3x4x1x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x4x4xf32>
}

// -----

// Along the axis that is not dilated they are not.
// CHECK-LABEL: @dilated_across
// CHECK: fused.convolution {{.*}}dilation = array<i64: 2, 1>{{.*}}pooling = #fused.pooling<max [1, 4]>
func.func @dilated_across(%x: tensor<1x3x12x8xf32>, %w: tensor<4x3x3x1xf32>) -> tensor<1x4x8x2xf32> {
  %c = fused.convolution %x, %w {stride = array<i64: 1, 1>, dilation = array<i64: 2, 1>, pre_padding = array<i64: 0, 0>, post_padding = array<i64: 0, 0>} : (tensor<1x3x12x8xf32>, tensor<4x3x3x1xf32>) -> tensor<1x4x8x8xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  %y = fused.window max %c {window = array<i64: 1, 4>, stride = array<i64: 1, 4>, dilation = array<i64: 1, 1>, pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x2xf32> {
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }
  func.return %y : tensor<1x4x8x2xf32>
}
