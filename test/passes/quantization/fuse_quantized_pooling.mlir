// RUN: rt-opt %s --split-input-file -p fuse-quantized-pooling,fold-constants,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @global
// CHECK: [[WIDE:%.*]] = trt.identity %x : (tensor<1x4x2x2xui8>) -> tensor<1x4x2x2xi32>
// CHECK: [[ZERO:%.*]] = trt.constant {value = dense<9> : tensor<1x1x1x1xi32>}
// CHECK: [[CENTRED:%.*]] = trt.elementwise sub [[WIDE]], [[ZERO]]
// CHECK: [[TOTAL:%.*]] = trt.reduce sum [[CENTRED]] {axes = array<i64: 2, 3>} : (tensor<1x4x2x2xi32>) -> tensor<1x4x1x1xi32>
// CHECK: [[EXACT:%.*]] = trt.identity [[TOTAL]] : (tensor<1x4x1x1xi32>) -> tensor<1x4x1x1xf32>
// CHECK: [[FACTOR:%.*]] = trt.constant {value = dense<6.250000e-02> : tensor<1x1x1x1xf32>}
// CHECK: [[SCALED:%.*]] = trt.elementwise prod [[EXACT]], [[FACTOR]] {{.*}} loc("mean")
// CHECK: [[ONE:%.*]] = trt.constant {value = dense<1.000000e+00>
// CHECK: %y = trt.quantize [[SCALED]], [[ONE]], %z_y
func.func @global(%x: tensor<1x4x2x2xui8>) -> tensor<1x4x1x1xui8> {
  %s_x = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z_x = trt.constant {value = dense<9> : tensor<ui8>} : tensor<ui8>
  %s_y = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %z_y = trt.constant {value = dense<3> : tensor<ui8>} : tensor<ui8>
  %r = trt.dequantize %x, %s_x, %z_x : (tensor<1x4x2x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x2x2xf32>
  %m = trt.reduce avg %r {axes = array<i64: 2, 3>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32> loc("mean")
  %y = trt.quantize %m, %s_y, %z_y : (tensor<1x4x1x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x1x1xui8>
  func.return %y : tensor<1x4x1x1xui8>
}

// -----

// The number of elements is one of the run.
// CHECK-LABEL: @global_of_any_size
// CHECK: [[TOTAL:%.*]] = trt.reduce sum
// CHECK: [[EXACT:%.*]] = trt.identity [[TOTAL]]
// CHECK: [[SHAPE:%.*]] = trt.shape %x
// CHECK: [[LENGTH:%.*]] = trt.gather [[SHAPE]], {{%.*}}
// CHECK: [[COUNT:%.*]] = trt.elementwise prod [[LENGTH]], {{%.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK: [[SINGLE:%.*]] = trt.shuffle [[COUNT]]
// CHECK: [[N:%.*]] = trt.identity [[SINGLE]]
// CHECK: [[DIVISOR:%.*]] = trt.elementwise prod {{%.*}}, [[N]]
// CHECK: [[FACTOR:%.*]] = trt.elementwise div {{%.*}}, [[DIVISOR]]
// CHECK: trt.elementwise prod [[EXACT]], [[FACTOR]]
func.func @global_of_any_size(%x: tensor<1x4x?x2xi8, #trt.dims<["1", "4", "h", "2"]>>) -> tensor<1x4x1x1xi8> {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %r = trt.dequantize %x, %s : (tensor<1x4x?x2xi8, #trt.dims<["1", "4", "h", "2"]>>, tensor<f32>) -> tensor<1x4x?x2xf32, #trt.dims<["1", "4", "h", "2"]>>
  %m = trt.reduce avg %r {axes = array<i64: 2, 3>} : (tensor<1x4x?x2xf32, #trt.dims<["1", "4", "h", "2"]>>) -> tensor<1x4x1x1xf32>
  %y = trt.quantize %m, %s : (tensor<1x4x1x1xf32>, tensor<f32>) -> tensor<1x4x1x1xi8>
  func.return %y : tensor<1x4x1x1xi8>
}

// -----

// CHECK-LABEL: @window
// CHECK: [[MEAN:%.*]] = trt.pooling average
// CHECK: [[SCALE:%.*]] = trt.constant {value = dense<2.000000e+00> : tensor<1x1x1x1xf32>}
// CHECK: [[RATIO:%.*]] = trt.elementwise div [[MEAN]], [[SCALE]]
// CHECK: [[ZERO:%.*]] = trt.constant {value = dense<3.000000e+00> : tensor<1x1x1x1xf32>}
// CHECK: [[SHIFTED:%.*]] = trt.elementwise sum [[RATIO]], [[ZERO]]
// CHECK: trt.quantize [[SHIFTED]], {{%.*}} : (tensor<1x4x1x1xf32>, tensor<f32>) -> tensor<1x4x1x1xui8>
func.func @window(%x: tensor<1x4x2x2xui8>) -> tensor<1x4x1x1xui8> {
  %s_x = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %s_y = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %z_y = trt.constant {value = dense<3> : tensor<ui8>} : tensor<ui8>
  %r = trt.dequantize %x, %s_x : (tensor<1x4x2x2xui8>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %m = trt.pooling average %r {window = array<i64: 2, 2>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32>
  %y = trt.quantize %m, %s_y, %z_y : (tensor<1x4x1x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x1x1xui8>
  func.return %y : tensor<1x4x1x1xui8>
}

// -----

// Maxima have no arithmetic; a mean that is read elsewhere stays as it is.
// CHECK-LABEL: @others
// CHECK: trt.pooling max
// CHECK-NEXT: trt.quantize
// CHECK: trt.reduce avg
// CHECK-NEXT: trt.quantize
func.func @others(%x: tensor<1x4x2x2xui8>) -> (tensor<1x4x1x1xui8>, tensor<1x4x1x1xf32>, tensor<1x4x1x1xui8>) {
  %s = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %r = trt.dequantize %x, %s : (tensor<1x4x2x2xui8>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %m = trt.pooling max %r {window = array<i64: 2, 2>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32>
  %y = trt.quantize %m, %s : (tensor<1x4x1x1xf32>, tensor<f32>) -> tensor<1x4x1x1xui8>
  %n = trt.reduce avg %r {axes = array<i64: 2, 3>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32>
  %z = trt.quantize %n, %s : (tensor<1x4x1x1xf32>, tensor<f32>) -> tensor<1x4x1x1xui8>
  func.return %y, %n, %z : tensor<1x4x1x1xui8>, tensor<1x4x1x1xf32>, tensor<1x4x1x1xui8>
}
