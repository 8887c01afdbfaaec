// RUN: rt-opt %s | rt-opt | filecheck %s
// RUN: rt-opt %s --print-op-generic | rt-opt | filecheck %s

// CHECK:      kernel.library_convolution @plain {library = "cudnn", proposal = 0 : i64, workspace_bytes = 1024 : i64, stride = array<i64: 2, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 0>, channels_last = true, function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, {{.*}}index) -> ()}
kernel.library_convolution @plain {library = "cudnn", proposal = 0 : i64, workspace_bytes = 1024 : i64,
  stride = array<i64: 2, 1>, dilation = array<i64: 1, 1>, padding = array<i64: 1, 0>, channels_last = true,
  function_type = (memref<?xf16>, memref<?xf16>, memref<?xf16>, memref<?xi8>, index, index, index, index, index, index,
  index, index, index) -> ()}
