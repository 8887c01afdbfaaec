// RUN: rt-opt %s | rt-opt | filecheck %s

// CHECK-LABEL: func.func @counted
func.func @counted(%n: tensor<i64>) {
  // CHECK: trt.define_size %n {symbol = "n1"} : tensor<i64>
  trt.define_size %n {symbol = "n1"} : tensor<i64>
  func.return
}

// CHECK-LABEL: func.func @computed
func.func @computed(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // CHECK: trt.define_size {symbol = "m", value = "2*n"}
  trt.define_size {symbol = "m", value = "2*n"}
  func.return
}
