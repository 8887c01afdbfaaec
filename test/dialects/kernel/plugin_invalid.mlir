// RUN: rt-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{C1: kernel.plugin: ranks [2, 2] do not fit the arguments (memref<?xf32>, memref<?xf32>, index, index, index)}}
kernel.plugin @plugin_c1 {plugin = "Twice", version = "1", namespace = "", inputs = 1 : i64, ranks = array<i64: 2, 2>, function_type = (memref<?xf32>, memref<?xf32>, index, index, index) -> ()}

// -----

// expected-error@+1 {{C1: kernel.plugin: ranks [1] do not fit the arguments (index, index)}}
kernel.plugin @plugin_c1_no_memory {plugin = "Twice", version = "1", namespace = "", inputs = 1 : i64, ranks = array<i64: 1>, function_type = (index, index) -> ()}
