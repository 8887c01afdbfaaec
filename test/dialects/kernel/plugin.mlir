// RUN: rt-opt %s | rt-opt | filecheck %s
// Kernels that are calls of a plugin.

// CHECK: kernel.plugin @twice {plugin = "Twice", version = "1", namespace = "", state = #trt.weights<"twice.state", "0123456789abcdef">, inputs = 1 : i64, ranks = array<i64: 2, 2>, function_type = (memref<?xf32>, memref<?xf32>, index, index, index, index) -> ()}
kernel.plugin @twice {plugin = "Twice", version = "1", namespace = "", state = #trt.weights<"twice.state", "0123456789abcdef">, inputs = 1 : i64, ranks = array<i64: 2, 2>, function_type = (memref<?xf32>, memref<?xf32>, index, index, index, index) -> ()}
// CHECK: kernel.plugin @table {plugin = "Table", version = "1", namespace = "mine", inputs = 0 : i64, ranks = array<i64: 0>, function_type = (memref<?xi32>) -> ()}
kernel.plugin @table {plugin = "Table", version = "1", namespace = "mine", inputs = 0 : i64, ranks = array<i64: 0>, function_type = (memref<?xi32>) -> ()}
