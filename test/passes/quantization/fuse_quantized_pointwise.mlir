// RUN: rt-opt %s --split-input-file -p fuse-quantized-pointwise,dce --print-debuginfo | filecheck %s

// CHECK-LABEL: @sum
// CHECK: [[WIDE_B:%.*]] = trt.identity %b : (tensor<4xui8>) -> tensor<4xf32>
// CHECK: [[B:%.*]] = trt.constant {value = dense<2.500000e-01>
// CHECK: [[ZERO:%.*]] = trt.constant {value = dense<-2.000000e+00>
// CHECK: [[PART:%.*]] = trt.multiply_add [[WIDE_B]], [[B]], [[ZERO]]
// CHECK: [[WIDE_A:%.*]] = trt.identity %a : (tensor<4xui8>) -> tensor<4xf32>
// CHECK: [[A:%.*]] = trt.constant {value = dense<5.000000e-01>
// CHECK: [[SUM:%.*]] = trt.multiply_add [[WIDE_A]], [[A]], [[PART]] {{.*}} loc("add")
// CHECK: [[ONE:%.*]] = trt.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %y = trt.quantize [[SUM]], [[ONE]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
// CHECK-NEXT: func.return %y
func.func @sum(%a: tensor<4xui8>, %b: tensor<4xui8>) -> tensor<4xui8> {
  %s_a = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %s_b = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %s_y = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %z_a = trt.constant {value = dense<10> : tensor<ui8>} : tensor<ui8>
  %z_b = trt.constant {value = dense<4> : tensor<ui8>} : tensor<ui8>
  %z_y = trt.constant {value = dense<4> : tensor<ui8>} : tensor<ui8>
  %x = trt.dequantize %a, %s_a, %z_a : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %v = trt.dequantize %b, %s_b, %z_b : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %r = trt.elementwise sum %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("add")
  %y = trt.quantize %r, %s_y, %z_y : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  func.return %y : tensor<4xui8>
}

// -----

// CHECK-LABEL: @product
// CHECK: [[WIDE_A:%.*]] = trt.identity %a : (tensor<4xi8>) -> tensor<4xi32>
// CHECK: [[Z_A:%.*]] = trt.constant {value = dense<-3> : tensor<1xi32>}
// CHECK: [[A:%.*]] = trt.elementwise sub [[WIDE_A]], [[Z_A]]
// CHECK: [[B:%.*]] = trt.identity %b : (tensor<1xi8>) -> tensor<1xi32>
// CHECK: [[EXACT:%.*]] = trt.elementwise prod [[A]], [[B]]
// CHECK: [[WIDE:%.*]] = trt.identity [[EXACT]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK: [[M:%.*]] = trt.constant {value = dense<2.500000e-01>
// CHECK: [[SCALED:%.*]] = trt.elementwise prod [[WIDE]], [[M]]
// CHECK: [[Z:%.*]] = trt.constant {value = dense<7.000000e+00>
// CHECK: [[SHIFTED:%.*]] = trt.elementwise sum [[SCALED]], [[Z]]
// CHECK: trt.quantize [[SHIFTED]], {{%.*}} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
func.func @product(%a: tensor<4xi8>, %b: tensor<1xi8>) -> tensor<4xi8> {
  %s_a = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %s_b = trt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %s_y = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %z_a = trt.constant {value = dense<-3> : tensor<i8>} : tensor<i8>
  %z_y = trt.constant {value = dense<7> : tensor<i8>} : tensor<i8>
  %x = trt.dequantize %a, %s_a, %z_a : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  %v = trt.dequantize %b, %s_b : (tensor<1xi8>, tensor<f32>) -> tensor<1xf32>
  %r = trt.elementwise prod %x, %v : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %y = trt.quantize %r, %s_y, %z_y : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}

// -----

// Bytes are moved as the numbers were that stand for them.
// CHECK-LABEL: @moved
// CHECK: [[MOVED:%.*]] = trt.shuffle %b {reshape_dims = #trt.dims<["1", "4"]>} : (tensor<4xui8>) -> tensor<1x4xui8>
// CHECK: [[WIDE:%.*]] = trt.identity [[MOVED]]
// CHECK: trt.multiply_add [[WIDE]]
func.func @moved(%a: tensor<2x4xui8>, %b: tensor<4xui8>) -> tensor<2x4xui8> {
  %s = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %x = trt.dequantize %a, %s : (tensor<2x4xui8>, tensor<f32>) -> tensor<2x4xf32>
  %v = trt.dequantize %b, %s : (tensor<4xui8>, tensor<f32>) -> tensor<4xf32>
  %w = trt.shuffle %v {reshape_dims = #trt.dims<["1", "4"]>} : (tensor<4xf32>) -> tensor<1x4xf32>
  %r = trt.elementwise sum %x, %w : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %y = trt.quantize %r, %s : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xui8>
  func.return %y : tensor<2x4xui8>
}

// -----

// What is repeated along the last axis comes first.
// CHECK-LABEL: @repeated
// CHECK: [[WIDE_A:%.*]] = trt.identity %a
// CHECK: [[PART:%.*]] = trt.multiply_add [[WIDE_A]]
// CHECK: [[WIDE_B:%.*]] = trt.identity %b
// CHECK: trt.multiply_add [[WIDE_B]], {{%.*}}, [[PART]]
func.func @repeated(%a: tensor<2x1xui8>, %b: tensor<2x4xui8>) -> tensor<2x4xui8> {
  %s = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %x = trt.dequantize %a, %s : (tensor<2x1xui8>, tensor<f32>) -> tensor<2x1xf32>
  %v = trt.dequantize %b, %s : (tensor<2x4xui8>, tensor<f32>) -> tensor<2x4xf32>
  %r = trt.elementwise sum %x, %v : (tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = trt.quantize %r, %s : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xui8>
  func.return %y : tensor<2x4xui8>
}

// -----

// Negative sums are 0 anyway: zero is the least byte.
// CHECK-LABEL: @rectified
// CHECK: trt.multiply_add
// CHECK: [[SUM:%.*]] = trt.multiply_add
// CHECK-NOT: trt.activation
// CHECK: trt.quantize [[SUM]]
func.func @rectified(%a: tensor<4xui8>, %b: tensor<4xui8>) -> tensor<4xui8> {
  %s = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %x = trt.dequantize %a, %s : (tensor<4xui8>, tensor<f32>) -> tensor<4xf32>
  %v = trt.dequantize %b, %s : (tensor<4xui8>, tensor<f32>) -> tensor<4xf32>
  %r = trt.elementwise sum %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = trt.activation relu %r : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.quantize %p, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
  func.return %y : tensor<4xui8>
}

// -----

// The sum is read elsewhere too; bytes differ in type; scales along an axis; a float operand.
// CHECK-LABEL: @others
// CHECK-COUNT-4: trt.elementwise sum
// CHECK-NOT: trt.multiply_add
func.func @others(%a: tensor<4xui8>, %b: tensor<4xi8>, %f: tensor<4xf32>) -> (tensor<4xui8>, tensor<4xf32>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>) {
  %s = trt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %t = trt.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %x = trt.dequantize %a, %s : (tensor<4xui8>, tensor<f32>) -> tensor<4xf32>
  %v = trt.dequantize %b, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %w = trt.dequantize %a, %t {axis = 0 : i64} : (tensor<4xui8>, tensor<4xf32>) -> tensor<4xf32>
  %read = trt.elementwise sum %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %mixed = trt.elementwise sum %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %along = trt.elementwise sum %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %float = trt.elementwise sum %x, %f : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = trt.quantize %read, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
  %1 = trt.quantize %mixed, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
  %2 = trt.quantize %along, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
  %3 = trt.quantize %float, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xui8>
  func.return %0, %read, %1, %2, %3 : tensor<4xui8>, tensor<4xf32>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>
}
