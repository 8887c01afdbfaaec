// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK:      kernel.library_product @plain {library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 1024 : i64, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf32>, memref<?xi8>, {{.*}}index) -> ()}
kernel.library_product @plain {library = "cublas_lt", proposal = 0 : i64, workspace_bytes = 1024 : i64,
  function_type = (memref<?xf16>, memref<?xf16>, memref<?xf32>, memref<?xi8>, index, index, index, index, index, index,
  index, index, index, index) -> ()}

// CHECK:      kernel.library_product @all {library = "cublas_lt", proposal = 1 : i64, workspace_bytes = 0 : i64, transpose_right = true, biased = true, rounded = true, activation = #kernel<library_activation relu>, function_type = {{.*}}}
kernel.library_product @all {library = "cublas_lt", proposal = 1 : i64, workspace_bytes = 0 : i64,
  transpose_right = true, biased = true, rounded = true, activation = #kernel<library_activation relu>,
  function_type = (memref<?xf32>, memref<?xf32>, memref<?xf32>, memref<?xi8>, memref<?xf32>, index, index, index, index,
  index, index, index, index, index, index) -> ()}
