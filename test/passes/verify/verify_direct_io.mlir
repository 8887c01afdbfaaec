// RUN: not rt-opt %s -p verify-direct-io 2>&1 | filecheck %s
// CHECK: output 'y': DIRECT_IO is set, but the layers do not work on the format HWC: a reformat (copy) would be needed

func.func @main(%x: tensor<1x3x8x8xf32> {trt.name = "x", trt.direct}) -> (tensor<1x3x8x8xf32, #trt.dims<["1", "3", "8", "8"], order = [0, 2, 3, 1]>> {trt.name = "y", trt.format = "HWC", trt.direct}) {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1", "d2", "d3"]>]} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  ^bb0(%0: f32):
    fused.yield %0 : f32
  }
  %z = fused.reformat %y : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32, #trt.dims<["1", "3", "8", "8"], order = [0, 2, 3, 1]>> loc("copy")
  func.return %z : tensor<1x3x8x8xf32, #trt.dims<["1", "3", "8", "8"], order = [0, 2, 3, 1]>>
}
