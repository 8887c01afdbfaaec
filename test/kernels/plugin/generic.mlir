// RUN: rt-opt %s -p 'convert-fused-to-kernel' | filecheck %s
// A plugin takes pointers to tensors that lie densely, then their lengths; what lies otherwise is copied first.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>> {trt.name = "x"}) -> (tensor<?x6xf32, #trt.dims<["n", "6"]>> {trt.name = "y"}) {
  // CHECK: [[X:%.*]] = plan.input %x
  // CHECK: [[Y:%.*]] = plan.buffer {bytes = #plan.expression<"24*n">}
  %state = trt.constant {value = dense<[123, 125]> : tensor<2xui8>} : tensor<2xui8>
  // CHECK: [[OWN:%.*]] = plan.buffer {bytes = #plan.expression<"12*n">}
  // CHECK: plan.launch [[X]], [[OWN]] {kernel = @[[ONE:plugin_[0-9a-f]+]], args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">, #plan.expression<"n">, #plan.expression<"3">, #plan.expression<"n">, #plan.expression<"3">]
  // CHECK: plan.launch [[OWN]], [[Y]] {kernel = @copy_
  %a = fused.plugin %state, %x {plugin = "Twice", made = [tensor<?x?xf32, #trt.dims<["x0.0", "x0.1"]>>]} : (tensor<2xui8>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  // CHECK: plan.launch {{.*}} {kernel = @copy_
  // CHECK: plan.launch {{.*}} {kernel = @[[ONE]]
  %b = fused.plugin %state, %a {plugin = "Twice", made = [tensor<?x?xf32, #trt.dims<["x0.0", "x0.1"]>>]} : (tensor<2xui8>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x3xf32, #trt.dims<["n", "3"]>>
  %y = fused.concat %a, %b {axis = 1 : i64, fused.in_place = [true, false]} : (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<?x3xf32, #trt.dims<["n", "3"]>>) -> tensor<?x6xf32, #trt.dims<["n", "6"]>>
  func.return %y : tensor<?x6xf32, #trt.dims<["n", "6"]>>
}
// CHECK: kernel.plugin @[[ONE]] {function_type = (memref<?xf32>, memref<?xf32>, index, index, index, index) -> (), plugin = "Twice", version = "1", namespace = "", state = #trt.weights<"fused.plugin.state", "{{[0-9a-f]+}}">, inputs = 1 : i64, ranks = array<i64: 2, 2>}
