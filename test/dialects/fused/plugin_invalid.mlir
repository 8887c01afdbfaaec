// RUN: rt-opt %s --split-input-file --verify-diagnostics

func.func @plugin_c1(%s: tensor<4xui8>, %x: tensor<3xf32>) {
  // expected-error@+1 {{C1: fused.plugin names no plugin}}
  %y = fused.plugin %s, %x {plugin = "", made = [tensor<3xf32>]} : (tensor<4xui8>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @plugin_c2(%s: tensor<4xi8>, %x: tensor<3xf32>) {
  // expected-error@+1 {{C2: the state of fused.plugin is a row of ui8, not tensor<4xi8>}}
  %y = fused.plugin %s, %x {plugin = "Twice", made = [tensor<3xf32>]} : (tensor<4xi8>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @plugin_c3(%s: tensor<4xui8>, %x: tensor<3xf32>) {
  // expected-error@+1 {{C3: n, x0.1 is no dimension of an operand of fused.plugin}}
  %y = fused.plugin %s, %x {plugin = "Twice", made = [tensor<?xf32, #trt.dims<["n + x0.1"]>>]} : (tensor<4xui8>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}
