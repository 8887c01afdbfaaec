// RUN: rt-opt %s | rt-opt | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>) {
  // CHECK: trt.require_equal {layer = "join", lengths = #trt.dims<["n", "2*(n // 2)"]>}
  trt.require_equal {layer = "join", lengths = #trt.dims<["n", "2*(n // 2)"]>}
  // CHECK: trt.require_equal {layer = "sum", lengths = #trt.dims<["n", "5"]>, kind = "equal_or_one"}
  trt.require_equal {layer = "sum", lengths = #trt.dims<["n", "5"]>, kind = "equal_or_one"}
  func.return
}
